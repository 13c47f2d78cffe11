import { expect, test } from "vitest";
import { cellError } from "@/components/cellError";
import { sectionsForm } from "@/models/form";

const columns = [{ field: "what", label: "What" }, { field: "pieces", kind: "integer", label: "Pieces" }];
const [lines, amount] = sectionsForm([
  { type: "input", field: "lines", kind: "table", label: "Lines", columns },
  { type: "input", field: "amount", kind: "number", label: "Amount" },
]).sections;

test("what is wrong in a cell of a table names its column and row", () => {
  expect(cellError(lines!, "[0].pieces is below 1")).toBe("Pieces, row 1 is below 1");
  expect(cellError(lines!, "[2].other is not a column")).toBe("[2].other is not a column");
  expect(cellError(amount!, "is below 1")).toBe("is below 1");
});
