import { expect, test } from "vitest";
import { columnsOf } from "../src/data/feed_form_data";

test("columns are typed one per line", () => {
  expect(columnsOf("speed: float\n\n  kind :string\n")).toEqual({ speed: "float", kind: "string" });
  expect(columnsOf("")).toEqual({});
});

test("a line without a type is left for the server to refuse", () => {
  expect(columnsOf("speed")).toEqual({ speed: "" });
});
