import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { IntlMessageFormat } from "intl-messageformat";
import { expect, it } from "vitest";
import { pseudo } from "@/locales/text";

const FOLDER = fileURLToPath(new URL("../src/locales/en/", import.meta.url));

async function messages(): Promise<[string, string][]> {
  const found: [string, string][] = [];
  for (const file of readdirSync(FOLDER)) {
    for (const catalogue of Object.values((await import(`../src/locales/en/${file.replace(/\.ts$/, "")}.ts`)) as Record<string, unknown>)) {
      for (const [key, text] of Object.entries(catalogue as Record<string, unknown>)) if (typeof text === "string") found.push([`${file} ${key}`, text]);
    }
  }
  return found;
}

const shown = (text: string) => String(new IntlMessageFormat(text, "en").format(new Proxy({}, { get: () => 2, has: () => true })));

it("every text is an ICU message, and its pseudo form is 40 % longer", async () => {
  const all = await messages();
  expect(all.length).toBeGreaterThan(500);
  for (const [key, text] of all) {
    const plain = shown(text);
    expect(plain, key).not.toBe("");
    expect(shown(pseudo(text)).length, key).toBeGreaterThanOrEqual(Math.floor(plain.replaceAll("2", "").length * 1.2));
  }
});
