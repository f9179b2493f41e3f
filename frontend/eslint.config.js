import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules/", "eslint.config.js"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // Typed arrays are indexed in hot loops whose bounds are the loop's own.
      "@typescript-eslint/no-non-null-assertion": "off",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // Text reaches the page by textContent and DOM nodes alone.
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Build DOM nodes with h()." },
        { property: "outerHTML", message: "Build DOM nodes with h()." },
        { property: "insertAdjacentHTML", message: "Build DOM nodes with h()." },
      ],
      "no-eval": "error",
      // The formatter breaks code, not long strings and comments.
      "max-len": ["error", { code: 140 }],
      eqeqeq: "error",
    },
  },
  // Scripts that Node.js runs as they are: they are in no TypeScript project.
  { files: ["**/*.mjs"], ...tseslint.configs.disableTypeChecked },
);
