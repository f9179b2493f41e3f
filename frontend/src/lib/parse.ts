/**
 * Parsers for data from outside: each takes an unknown value and returns it
 * typed, or throws a ParseFault.
 */

export class ParseFault extends Error {
  constructor(
    readonly path: string,
    private readonly wanted: string,
  ) {
    super(`${path === "" ? "value" : path}: ${wanted} expected`);
    this.name = "ParseFault";
  }

  /** The same fault for a value at `path` of a larger one. */
  within(path: string): ParseFault {
    return new ParseFault(path + this.path, this.wanted);
  }
}

export type Parser<T> = (value: unknown, path?: string) => T;
type Shape = Record<string, Parser<unknown>>;
type Parsed<S extends Shape> = { [K in keyof S]: ReturnType<S[K]> };

export const string: Parser<string> = (value, path = "") => {
  if (typeof value !== "string") throw new ParseFault(path, "text");
  return value;
};

export const number: Parser<number> = (value, path = "") => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new ParseFault(path, "a number");
  return value;
};

export const integer: Parser<number> = (value, path = "") => {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) throw new ParseFault(path, "a whole number");
  return value;
};

export const boolean: Parser<boolean> = (value, path = "") => {
  if (typeof value !== "boolean") throw new ParseFault(path, "true or false");
  return value;
};

export const anything: Parser<unknown> = (value) => value;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const object: Parser<Record<string, unknown>> = (value, path = "") => {
  if (!isObject(value)) throw new ParseFault(path, "an object");
  return value;
};

/** An id: the server uses numbers and strings; the front end compares them as strings. */
export const id: Parser<string> = (value, path = "") => {
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  return string(value, path);
};

export function nullable<T>(inner: Parser<T>): Parser<T | null> {
  return (value, path = "") => (value === null || value === undefined ? null : inner(value, path));
}

/** `fallback` if the key is missing or null. */
export function otherwise<T>(inner: Parser<T>, fallback: T): Parser<T> {
  return (value, path = "") => (value === null || value === undefined ? fallback : inner(value, path));
}

/**
 * Paths are built only after a fault: building one for every value took a quarter of the
 * time of a frame of alerts.
 */
function placed(fault: unknown, path: string, key: string | number): unknown {
  return fault instanceof ParseFault ? fault.within(`${path}/${key}`) : fault;
}

export function list<T>(inner: Parser<T>): Parser<T[]> {
  return (value, path = "") => {
    if (!Array.isArray(value)) throw new ParseFault(path, "a list");
    const result: T[] = [];
    try {
      for (const item of value) result.push(inner(item));
    } catch (fault) {
      throw placed(fault, path, result.length);
    }
    return result;
  };
}

export function record<S extends Shape>(shape: S): Parser<Parsed<S>> {
  const parsers = Object.entries(shape);
  return (value, path = "") => {
    const source = object(value, path);
    const result: Record<string, unknown> = {};
    let at = "";
    try {
      for (const [key, parser] of parsers) result[(at = key)] = parser(source[key]);
    } catch (fault) {
      throw placed(fault, path, at);
    }
    return result as Parsed<S>;
  };
}

export function oneOf<const T extends string>(...known: T[]): Parser<T> {
  return (value, path = "") => {
    const found = known.find((name) => name === value);
    if (found === undefined) throw new ParseFault(path, `one of ${known.join(", ")}`);
    return found;
  };
}

export function dictionary<T>(inner: Parser<T>): Parser<Record<string, T>> {
  return (value, path = "") =>
    Object.fromEntries(Object.entries(object(value, path)).map(([key, item]) => [key, inner(item, `${path}/${key}`)]));
}

/** Four finite numbers: west, south, east, north, or another box of two corners. */
export const four: Parser<[number, number, number, number]> = (value, path = "") => {
  const items = list(number)(value, path);
  if (items.length !== 4) throw new ParseFault(path, "four numbers");
  return items as [number, number, number, number];
};
