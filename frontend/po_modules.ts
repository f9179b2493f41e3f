import { readFileSync } from "node:fs";
import { po } from "gettext-parser";
import type { Plugin } from "vite";

/** A .po file as a module: its translations, and the rule for plurals of its header. */
export function poModules(): Plugin {
  return {
    name: "po-modules",
    load(id) {
      if (!id.endsWith(".po")) return null;
      const { headers, translations } = po.parse(readFileSync(id));
      const entries = Object.values(translations).flatMap((group) => Object.values(group));
      const texts = Object.fromEntries(
        entries
          .filter(({ msgid, msgstr }) => msgid !== "" && msgstr.every((text) => text !== ""))
          .map(({ msgctxt, msgid, msgstr }) => [msgctxt === undefined ? msgid : `${msgctxt}\u0004${msgid}`, msgstr]),
      );
      const rule = /plural=([n\d\s()!=<>&|?:%]+);/.exec(headers["Plural-Forms"] ?? headers["plural-forms"] ?? "")?.[1];
      if (rule === undefined) throw new Error(`${id}: its header has no Plural-Forms`);
      return `export default { texts: ${JSON.stringify(texts)}, form: (n) => Number(${rule}) };`;
    },
  };
}
