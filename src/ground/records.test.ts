// SPDX-License-Identifier: Apache-2.0
// Records come back as they were written, and a record that is not whole is not taken for one that is not there.

import { expect, test } from "vitest";
import { HandMadeGround } from "./hand-made-ground.fixture.ts";
import { decodeUtf8, encodeUtf8, readRecord, writeRecord } from "./records.ts";

const path = "/var/lib/ai-tools/hold.json";
const ENOSPC = 28;
const isNamed = (value: unknown): value is { name: string } =>
  typeof value === "object" && value !== null && "name" in value && typeof value.name === "string";

test("a record comes back as it was written, whatever its texts hold", () => {
  const ground = new HandMadeGround();
  for (const name of ["olga", "päth wîth\nlines \u0000 \u{1f600} 漢 %41 \\", ""]) {
    expect(writeRecord(ground, path, { name })).toBe(0);
    expect(readRecord(ground, path, isNamed)).toEqual({ name });
  }
  expect(ground.modes.get(path)).toBe(0o644);
});

test("a record that is not there is undefined", () => {
  expect(readRecord(new HandMadeGround(), path, isNamed)).toBeUndefined();
});

test.each([
  ["empty", ""],
  ["half", '{"name":"ol'],
  ["of another form", '{"nome":"olga"}'],
  ["no object", "null"],
  ["unreadable", 13],
])("a record that is %s is told, and not taken for absent", (_what, text) => {
  const ground = new HandMadeGround();
  ground.files.set(path, text);
  expect(readRecord(ground, path, isNamed)).toMatch(
    /^\/var\/lib\/ai-tools\/hold\.json (cannot be read|is not a record)/,
  );
});

test("bytes and texts are each other's", () => {
  for (const text of ["a", "ü", "漢", "\u{1f600}", "%C3%BC"]) expect(decodeUtf8(encodeUtf8(text))).toBe(text);
  expect(encodeUtf8("ü")).toBe("\xc3\xbc");
  expect(decodeUtf8("\xff\xfe")).toBe("\xff\xfe");
});

test("a record that cannot be written leaves the one before it, and nothing torn beside it", () => {
  const ground = new HandMadeGround();
  writeRecord(ground, path, { name: "before" });
  const beside = `${path}.${ground.pid}.new`;
  ground.replaceFile = () => {
    ground.files.set(beside, '{"na');
    return ENOSPC;
  };
  expect(writeRecord(ground, path, { name: "after" })).toBe(ENOSPC);
  expect(readRecord(ground, path, isNamed)).toEqual({ name: "before" });
  expect([...ground.files.keys()]).toEqual([path]);
});
