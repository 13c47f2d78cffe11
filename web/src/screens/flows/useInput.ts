/** The input that is being written: fields and JSON are two views of one value. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { writeJson } from "@/models/json";
import { type InputField, besideFields, faultsIn, inputFrom, inputFromText, valuesFrom } from "@/models/schemaForm";
import { t } from "./text";

type Given = Record<string, unknown>;
export const JSON_FIELD = "input";

export type Input = {
  isJson: boolean;
  values: Given;
  text: string;
  setField: (name: string, value: unknown) => void;
  setText: (text: string) => void;
  /** What keeps the JSON from being shown as fields; empty: nothing. */
  toggle: () => string;
  /** Writes the fields down as JSON: another version may have other fields. */
  writeDown: () => void;
  read: () => { value: Given | null; faults: Record<string, string> };
};

export function useInput(fields: readonly InputField[], given: Given | null): Input {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const [values, setValues] = useState(() => valuesFrom(fields, given));
  const [beside, setBeside] = useState(() => (given === null ? {} : besideFields(fields, given)));
  const [text, setText] = useState(() => textOf(given ?? inputFrom(fields, values, {})));
  const isJson = fields.length === 0 || search.view === "json";
  const look = (view: "json" | undefined) =>
    void navigate({ to: ".", search: (old: object) => ({ ...old, view }), replace: true, resetScroll: false });

  function writeDown(): void {
    if (!isJson) setText(textOf(inputFrom(fields, values, beside)));
  }

  function toggle(): string {
    if (!isJson) {
      writeDown();
      look("json");
      return "";
    }
    const value = inputFromText(text);
    if (value === null) return t("notObject");
    setValues(valuesFrom(fields, value));
    setBeside(besideFields(fields, value));
    look(undefined);
    return "";
  }

  function read(): ReturnType<Input["read"]> {
    if (!isJson) return { value: inputFrom(fields, values, beside), faults: faultsIn(fields, values) };
    const value = inputFromText(text);
    return { value, faults: value === null ? { [JSON_FIELD]: t("notObject") } : {} };
  }

  return { isJson, values, text, setField: (name, value) => setValues((old) => ({ ...old, [name]: value })), setText, toggle, writeDown, read };
}

function textOf(value: Given): string {
  return writeJson(value, 2);
}
