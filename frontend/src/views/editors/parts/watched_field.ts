/** The target of a query: one region, or ranges of values; the map shows it. */

import { FEATURE } from "../../../data/bulk_data";
import type { Watched } from "../../../data/watched_data";
import { h, replace } from "../../../lib/dom";
import { RangesField } from "../../query_form/ranges_field";
import { RegionChoice } from "../../query_form/region_choice";
import type { EditorContext } from "../editor";
import { t } from "../../../lib/texts";

export class WatchedField {
  readonly element: HTMLElement;
  private readonly region: RegionChoice;
  private readonly ranges: RangesField;
  private readonly fields = h("div", { class: "stack" });

  private picture: HTMLElement | null = null;

  /** `watched` is modified in place. */
  constructor(
    private readonly watched: Watched,
    private readonly context: EditorContext,
    private readonly onChange: () => void,
    offered: readonly Watched["place"][] = ["region", "ranges"],
  ) {
    this.region = new RegionChoice({
      context,
      value: watched.region,
      id: "region",
      pointer: "/region",
      onChange: (isElsewhere) => this.regionChanged(isElsewhere),
    });
    this.ranges = new RangesField({
      feed: context.feed,
      entries: watched.ranges,
      onChange: (ranges) => {
        watched.ranges = ranges;
        onChange();
      },
    });
    const isTemplate = watched.region !== null && "region" in watched.region && watched.region.region === FEATURE;
    this.element = h("div", { class: "stack" }, isTemplate || offered.length === 1 ? null : this.places(), this.fields);
    this.showFields();
    this.showMap(true);
  }

  /**
   * The region has handles; one drawn without a request becomes the region
   * too: the last one counts.
   */
  showMap(fit: boolean): void {
    const shape = this.watched.place === "region" ? this.region.shape(true) : null;
    this.context.map.show(shape === null ? [] : [{ ...shape, picture: this.picture }], fit);
    if (this.watched.place === "region") this.region.draw(false);
    else this.context.map.stop();
  }

  /** An element drawn over the region; null: none. */
  showPicture(picture: HTMLElement | null): void {
    if (picture === this.picture) return;
    this.picture = picture;
    this.showMap(false);
  }

  private regionChanged(isElsewhere: boolean): void {
    this.watched.region = this.region.value();
    this.showMap(isElsewhere);
    this.onChange();
  }

  private places(): HTMLElement {
    const places = (
      [
        ["region", t("In a region")],
        ["ranges", t("Range of values")],
      ] as const
    ).map(([place, text]) => h("button", { type: "button", "data-place": place, onClick: () => this.turn(place) }, text));
    return h("div", { class: "segmented", role: "group", "aria-label": t("What is watched") }, ...places);
  }

  private turn(place: Watched["place"]): void {
    this.watched.place = place;
    if (place === "ranges") this.ranges.begin();
    this.showFields();
    this.showMap(false);
    this.onChange();
  }

  private showFields(): void {
    const { place } = this.watched;
    for (const element of this.element.querySelectorAll("[data-place]"))
      element.setAttribute("aria-pressed", String(element.getAttribute("data-place") === place));
    replace(this.fields, place === "region" ? this.region.element : this.ranges.element);
  }
}
