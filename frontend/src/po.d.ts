declare module "*.po" {
  export interface Catalogue {
    /** English (after its context and U+0004, if it has one) to the forms that are translated. */
    texts: Record<string, string[]>;
    /** Which form a count takes. */
    form: (count: number) => number;
  }
  const catalogue: Catalogue;
  export default catalogue;
}
