// SPDX-License-Identifier: Apache-2.0
// Figures for a person who has two seconds.

import { expect, test } from "vitest";
import { age, size } from "./show.ts";

test.each([
  [0, "0s"],
  [59, "59s"],
  [60, "1m00s"],
  [3_599, "59m59s"],
  [3_600, "1h00m"],
  [86_399, "23h59m"],
  [86_400, "1d00h"],
  [864_000, "10d00h"],
])("%i seconds are %s", (seconds, words) => {
  expect(age(seconds)).toBe(words);
});

test.each([
  [0, "0K"],
  [4_096, "4K"],
  [1_048_575, "1.0M"],
  [5 * 1_048_576, "5.0M"],
  [512 * 1_048_576, "512M"],
  [1.5 * 1_073_741_824, "1.5G"],
  [20 * 1_073_741_824, "20G"],
  [3 * 1_099_511_627_776, "3.0T"],
])("%i bytes are %s", (bytes, words) => {
  expect(size(bytes)).toBe(words);
});
