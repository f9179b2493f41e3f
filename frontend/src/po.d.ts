declare module "*.po" {
  export interface Catalogue {
    /** English (after its context and U+0004, if it has one) to the forms that are translated. */
    texts: Record<string, string[]>;
    /** The plural form of a count. */
    form: (count: number) => number;
  }
  const catalogue: Catalogue;
  export default catalogue;
}
