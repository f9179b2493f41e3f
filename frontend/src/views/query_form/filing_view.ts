/** The folder and the tags of a query. */

import { h, replace } from "../../lib/dom";
import { filing, type QueryRow } from "../../lib/shapes";
import { foldersOf, tagsOf, tagsOfText } from "../../data/query_list";
import { getAll, query as address } from "../../lib/api";
import { fail } from "../shell_view";
import { section } from "./section";
import { t } from "../../lib/texts";

const MOST_QUERIES = 20_000;

export class FilingView {
  readonly element: HTMLElement;
  private readonly folders = h("datalist", { id: "query-folders" });
  private readonly tagNames = h("datalist", { id: "query-tag-names" });
  private readonly folder: HTMLInputElement;
  private readonly tags: HTMLInputElement;
  private isLoaded = false;

  constructor(
    private readonly feed: string,
    from: Pick<QueryRow, "folder" | "tags"> | null,
  ) {
    this.folder = h("input", {
      class: "input",
      id: "query-folder",
      list: "query-folders",
      maxlength: 200,
      value: from?.folder ?? "",
      placeholder: t("Harbour/Night"),
      autocomplete: "off",
    });
    this.tags = h("input", {
      class: "input",
      id: "query-tags",
      list: "query-tag-names",
      maxlength: 1000,
      value: from?.tags.join(", ") ?? "",
      placeholder: t("weekly, customs"),
      autocomplete: "off",
    });
    for (const input of [this.folder, this.tags]) input.addEventListener("focus", () => void this.load());
    this.element = section(
      t("Folder and tags"),
      h(
        "div",
        { class: "pair" },
        h("div", { class: "field", "data-pointer": "/folder" }, h("label", { for: "query-folder" }, t("Folder")), this.folder),
        h("div", { class: "field", "data-pointer": "/tags" }, h("label", { for: "query-tags" }, t("Tags, with commas between")), this.tags),
      ),
      this.folders,
      this.tagNames,
    );
  }

  values(): { folder: string; tags: string[] } {
    return { folder: this.folder.value.trim(), tags: tagsOfText(this.tags.value) };
  }

  /** Loads the names in use when they are first needed. */
  private async load(): Promise<void> {
    if (this.isLoaded) return;
    this.isLoaded = true;
    try {
      const rows = await getAll(address("queries/", { feed: this.feed, page_size: 1000 }), filing, MOST_QUERIES);
      replace(this.folders, ...foldersOf(rows).map((name) => h("option", { value: name })));
      replace(this.tagNames, ...tagsOf(rows).map((name) => h("option", { value: name })));
    } catch (error) {
      this.isLoaded = false;
      fail(error);
    }
  }
}
