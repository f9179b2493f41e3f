/**
 * Texts in the reader's language: English in the code, other languages in locale/<language>.po.
 *
 * The language of the page is in `<html lang>`; a text without a translation stays English.
 */

import type { Catalogue } from "*.po";

/** Languages of the pages by the server's codes, each with its native name. */
export const LANGUAGES = [
  ["en-gb", "English"],
  ["de", "Deutsch"],
] as const;

export type Values = Record<string, string | number>;

const catalogues = import.meta.glob<{ default: Catalogue }>("../../locale/*.po");
export const language = typeof document === "undefined" ? "en" : document.documentElement.lang.slice(0, 2);
const chosen = catalogues[`../../locale/${language}.po`];
// Modules use texts while they are loaded, so the catalogue has to be loaded before.
const catalogue: Catalogue | null = chosen === undefined ? null : (await chosen()).default;

/** A text; `{name}` is replaced by the value of that name. */
export function t(text: string, values: Values = {}): string {
  return filled(catalogue?.texts[text]?.[0] ?? text, values);
}

/**
 * A text about `count` things: `one` for a single one, else `other`; `{count}`
 * is replaced by the number.
 */
export function tn(one: string, other: string, count: number, values: Values = {}): string {
  const forms = catalogue?.texts[one];
  const text = forms === undefined ? (count === 1 ? one : other) : (forms[catalogue!.form(count)] ?? other);
  return filled(text, { count: formatNumber(count), ...values });
}

const NUMBER = new Intl.NumberFormat(language === "en" ? "en-GB" : language);

const TENTHS = new Intl.NumberFormat(language === "en" ? "en-GB" : language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A number in the format of the reader's language. */
export function formatNumber(value: number): string {
  return NUMBER.format(value);
}

const COMPACT = new Intl.NumberFormat(language === "en" ? "en-GB" : language, { notation: "compact", maximumFractionDigits: 1 });

/** A number in the format of the reader's language, large ones short: 1.2K. */
export function formatCompact(value: number): string {
  return COMPACT.format(value);
}

/** A number in the format of the reader's language with one digit after the decimal sign. */
export function formatTenths(value: number): string {
  return TENTHS.format(value);
}

function filled(text: string, values: Values): string {
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
