import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  faultInForm,
  fromCalculus,
  outputsOf,
  textWithoutInputs,
  toCalculus,
  withInputs,
  type CalculusEntries,
} from "../src/data/calculus_document_data";
import { definedAlike, marked, namesOf, placed, quoted, tokens } from "../src/data/calculus_program_data";
import {
  answered,
  groundings,
  intervalAt,
  laneName,
  ruleLines,
  sandboxAnswer,
  shownLanes,
  type Lane,
} from "../src/data/calculus_sandbox_data";
import { grouped, sentenceParts, filledSentence, templateList } from "../src/data/calculus_template_data";
import { feed } from "../src/lib/shapes";

const STRAIT = feed({ name: "strait", crs: "geographic", time: "ms", columns: { sog: "float", cog: "float", ship_type: "string" } });
const PROGRAM = `
% slow(X) in a comment is no fluent
initiatedAt(slow(V)=true, T) :- happensAt(position(V, Speed), T), Speed < 0.5.
terminatedAt(slow(V)=true, T) :- happensAt(gap_start(V), T), \\+ holdsAt(moored(V, _Place)=true, T).
spatial(within(V)=true, inside(position, 'Port of Calance', 60000)).
spatial(near(A, B)=true, proximity(position, 500, 10000)).
holdsFor(rendezvous(A, B)=true, I) :-
    holdsFor(near(A, B)=true, In), holdsFor(walking(A)=true, Iw),
    intersect_all([In, Iw], I).
happensAt(arrival(V), T) :- happensAt(start(within(V)=true), T).
buildFromPoints(walking(_)=true).
`;

describe("names of a program", () => {
  it("finds the defined name that a misspelt one may mean", () => {
    const names = namesOf("initiatedAt(stopped(X)=true, T) :- happensAt(stop(X), T). initiatedAt(go(X)=true, T) :- happensAt(stop(X), T).");
    const alike = ["stoped", "stoppped", "stoppde", "stipped", "stopped", "stop", "stops", "og", "g"].map((name) =>
      definedAlike(name, names),
    );
    expect(alike).toEqual(["stopped", "stopped", "stopped", "stopped", null, null, null, null, null]);
  });

  it("distinguishes names that rules define from inputs", () => {
    const names = namesOf(PROGRAM);
    expect(names.defined.map(({ name, kind }) => [name, kind])).toEqual([
      ["slow", "fluent"],
      ["within", "fluent"],
      ["near", "fluent"],
      ["rendezvous", "fluent"],
      ["arrival", "event"],
    ]);
    expect(names.inputs.map(({ name, kind, args, points }) => [name, kind, args.length, points])).toEqual([
      ["position", "event", 2, false],
      ["gap_start", "event", 1, false],
      ["moored", "fluent", 2, false],
      ["walking", "fluent", 1, true],
    ]);
    expect(names.regions).toEqual(["Port of Calance"]);
    expect(names.variables).toContain("Speed");
  });

  it("finds names in quotes, which may have umlauts", () => {
    const names = namesOf(
      "initiatedAt('beschäftigt'(X)=true, T) :- happensAt('Tür auf'(X), T).\n" +
        "spatial('nah bei'(A, B)=true, distance('Ort', 3)).\noutputEntity('beschäftigt'(_)=true).",
    );
    expect(names.defined.map(({ name, kind, args }) => [name, kind, args])).toEqual([
      ["beschäftigt", "fluent", ["X"]],
      ["nah bei", "fluent", ["A", "B"]],
    ]);
    expect(names.inputs.map(({ name }) => name)).toEqual(["Tür auf", "Ort"]);
    expect(names.outputs).toEqual(["beschäftigt"]);
  });

  it("reads initiates and terminates as an event and a fluent", () => {
    const names = namesOf("initiates(enter(V, A), inside(V, A)=true, T). happensAt(x(V), T) :- happensAt(end(inside(V, A)=true), T).");
    expect(names.defined.map(({ name }) => name)).toContain("inside");
    expect(names.inputs.map(({ name, args }) => [name, args])).toEqual([["enter", ["V", "A"]]]);
  });

  it("survives any text, and its tokens are parts of it in order", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...PROGRAM.split(/(?<=[(),.=\s])/), "'", "[", ":-", ".")), (parts) => {
        const text = parts.join("");
        let end = 0;
        for (const token of tokens(text)) {
          expect(token.at).toBeGreaterThanOrEqual(end);
          end = token.at + token.text.length;
          expect(text.slice(token.at, end)).toBe(token.text);
        }
        namesOf(text);
      }),
    );
  });

  it("quotes names that need it", () => {
    expect(["area", "Area", "port_1", "Port of Calance"].map(quoted)).toEqual(["area", "'Area'", "port_1", "'Port of Calance'"]);
  });
});

describe("places of faults", () => {
  it("reads line and column from the server's message", () => {
    expect(placed({ pointer: "/program", message: "line 4, column 10: unknown fluent 'sloow'; did you mean 'slow'? Known: slow" })).toEqual(
      { line: 4, column: 10, message: "unknown fluent 'sloow'; did you mean 'slow'? Known: slow" },
    );
    expect(placed({ pointer: "/program", message: "must be the text of a program" })).toBeNull();
    expect(placed({ pointer: "/window", message: "line 4, column 10: x" })).toBeNull();
  });

  it("marks the word there, and something visible wherever it points", () => {
    expect(marked("a.\nholdsAt(b)", { line: 2, column: 1 })).toEqual([3, 10]);
    expect(marked("ab\ncd", { line: 1, column: 9 })).toEqual([1, 2]);
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 40 }), (text, line, column) => {
        const [from, to] = marked(text, { line, column });
        expect(from).toBeGreaterThanOrEqual(0);
        expect(to).toBeLessThanOrEqual(text.length);
        expect(from).toBeLessThanOrEqual(to);
      }),
    );
  });
});

describe("entries and document", () => {
  it("round-trips documents", () => {
    const document = {
      family: "calculus",
      version: 1,
      program: PROGRAM,
      outputs: ["rendezvous"],
      window: "PT1H",
      step: 5000,
      dialect: "rtec1",
      where: [["sog", ">", 0]],
      inputs: {
        position: { args: ["entity", "sog"] },
        gap_start: { args: ["entity"] },
        moored: { args: ["entity", "entity2"], fluent: "intervals" },
        walking: { args: ["entity"], fluent: "points" },
      },
      areas: { "Port of Calance": { region: "Port" } },
    };
    expect(toCalculus(fromCalculus(document, STRAIT))).toEqual(document);
  });

  it("leaves out empty fields, so that the server reports them", () => {
    expect(Object.keys(toCalculus(fromCalculus({ family: "calculus", version: 1 }, STRAIT)))).toEqual([
      "family",
      "version",
      "window",
      "step",
    ]);
  });

  it("guesses inputs from the names of arguments and the feed's columns", () => {
    const { inputs } = fromCalculus(
      {
        family: "calculus",
        program: "happensAt(e(V), T) :- happensAt(velocity(V, Speed, Course, Other), T). spatial(near(A, B)=true, distance(coord, 5)).",
      },
      STRAIT,
    );
    expect(inputs.map(({ name, kind, columns }) => [name, kind, columns])).toEqual([
      ["velocity", "event", ["entity", "sog", "cog", "entity4"]],
      ["coord", "event", ["entity"]],
    ]);
  });

  it("does not call rules over a synopsis rules that use nothing", () => {
    expect(textWithoutInputs({ synopsis: { speed: "sog" } })).toContain("makes events such as velocity");
    expect(textWithoutInputs({})).toContain("use nothing from the rows yet");
  });

  it("asks for no columns of synopsis events, but keeps an input that was set", () => {
    const program =
      "initiatedAt(gone(V)=true, T) :- happensAt(gap_start(V), T), happensAt(entersArea(V, A), T), happensAt(position(V, Speed), T).";
    const synopsis = { speed: "sog", gap: "PT2M" };
    const document = {
      family: "calculus",
      version: 1,
      program,
      outputs: ["gone"],
      window: "PT10M",
      step: "PT10S",
      synopsis,
      inputs: { position: { args: ["entity", "sog"] } },
    };
    expect(toCalculus(fromCalculus(document, STRAIT))).toEqual(document);
    const own = { ...document, inputs: { ...document.inputs, gap_start: { args: ["entity"] } } };
    expect(toCalculus(fromCalculus(own, STRAIT))).toEqual(own);
  });

  it("keeps the outputs that a saved program declares until some are chosen", () => {
    const document = {
      family: "calculus",
      version: 1,
      program: `${PROGRAM} outputEntity(slow(_)=true).`,
      window: "PT1H",
      step: 5000,
      inputs: {
        position: { args: ["entity", "sog"] },
        gap_start: { args: ["entity"] },
        moored: { args: ["entity", "entity2"], fluent: "intervals" },
        walking: { args: ["entity"], fluent: "points" },
      },
    };
    const entries = fromCalculus(document, STRAIT);
    expect(toCalculus(entries)).toEqual(document);
    expect(outputsOf(entries, namesOf(entries.program))).toEqual(["slow"]);
    expect(toCalculus({ ...entries, outputs: ["arrival"] })).toEqual({ ...document, outputs: ["arrival"] });
  });

  it("keeps settings while the text is invalid, and drops guesses for unused names", () => {
    const entries = fromCalculus({ program: "happensAt(e(V), T) :- happensAt(a(V), T), happensAt(b(V), T)." }, STRAIT);
    const set = { ...entries, inputs: entries.inputs.map((entry) => (entry.name === "a" ? { ...entry, isGuessed: false } : entry)) };
    expect(withInputs(set, namesOf(""), STRAIT).inputs.map(({ name }) => name)).toEqual(["a"]);
  });

  it("lets an argument be added to an input whose columns were chosen, and keeps the columns of one that is removed for a moment", () => {
    const rules = (event: string): string => `initiatedAt(fast(V)=true, T) :- happensAt(${event}, T).`;
    const chosen = {
      family: "calculus",
      version: 1,
      program: rules("position(V)"),
      inputs: { position: { args: ["entity2"] } },
      window: 1,
      step: 1,
    };
    const typed = (entries: CalculusEntries, event: string): CalculusEntries =>
      withInputs({ ...entries, program: rules(event) }, namesOf(rules(event)), STRAIT);
    const more = typed(fromCalculus(chosen, STRAIT), "position(V, Speed)");
    expect(toCalculus(more)["inputs"]).toEqual({ position: { args: ["entity2", "sog"] } });
    const fewer = typed({ ...more, inputs: more.inputs.map((one) => ({ ...one, columns: ["entity2", "cog"] })) }, "position(V)");
    expect(toCalculus(fewer)["inputs"]).toEqual({ position: { args: ["entity2"] } });
    expect(toCalculus(typed(fewer, "position(V, Speed)"))["inputs"]).toEqual({ position: { args: ["entity2", "cog"] } });
    const term = { ...chosen, program: rules("position(at(V, W))"), inputs: { position: { args: ["entity", "entity2"] } } };
    expect(toCalculus(fromCalculus(term, STRAIT))["inputs"]).toEqual(term.inputs);
  });

  it("answers what the form shows: after renaming the only output the last one, and nothing where all were unticked", () => {
    const entries = fromCalculus({ program: PROGRAM, outputs: ["gone"] }, STRAIT);
    expect(outputsOf(entries, namesOf(PROGRAM))).toEqual(["arrival"]);
    expect(toCalculus(entries)["outputs"]).toEqual(["arrival"]);
    expect(toCalculus({ ...entries, outputs: [] })["outputs"]).toEqual([]);
    expect(faultInForm({ pointer: "/outputs", message: "must be a list" }).message).toContain("tick");
  });

  it("defaults to the last definition as output, and drops outputs that left the text", () => {
    const names = namesOf(PROGRAM);
    expect(outputsOf({ ...fromCalculus({}, STRAIT), program: PROGRAM }, names)).toEqual(["arrival"]);
    expect(outputsOf(fromCalculus({ program: PROGRAM, outputs: ["slow", "gone"] }, STRAIT), names)).toEqual(["slow"]);
  });
});

describe("templates", () => {
  const raw = {
    name: "meeting",
    group: "Two",
    title: "Two meet",
    sentence: "Within {distance} for {span}, {else}.",
    parameters: [
      { name: "distance", kind: "length", label: "Closer than", unit: "m", value: 500 },
      { name: "span", kind: "duration", label: "Longer than", value: "PT2M" },
    ],
  };

  it("splits sentences at their parameters", () => {
    const [one] = templateList({ templates: [raw] }).templates;
    expect(sentenceParts(one!).map((part) => ("text" in part ? part.text : part.parameter.name))).toEqual([
      "Within ",
      "distance",
      " for ",
      "span",
      ", ",
      "{else}",
      ".",
    ]);
  });

  it("fills values into sentences", () => {
    const [one] = templateList({ templates: [raw] }).templates;
    expect(filledSentence(one!, { distance: 500, span: "PT1M" }, "ms")).toBe("Within 500 m for 1 minute, {else}.");
    expect(filledSentence(one!, { distance: 500, span: 90_000 }, "ms")).toBe("Within 500 m for 90 seconds, {else}.");
  });

  it("groups in the server's order", () => {
    const { templates } = templateList({ templates: [raw, { ...raw, name: "x", group: "One" }, { ...raw, name: "y" }] });
    expect(grouped(templates).map(([group, of]) => [group, of.map(({ name }) => name)])).toEqual([
      ["Two", ["meeting", "y"]],
      ["One", ["x"]],
    ]);
  });
});

describe("sandbox", () => {
  const made = (fluent: string, args: string[], more: Partial<Lane> = {}): Lane => ({
    fluent,
    args,
    value: "true",
    kind: "simple",
    level: 1,
    is_output: false,
    intervals: [{ start: 10, end: 20, began: null, ended: null }],
    ...more,
  });
  const lanes = [
    made("slow", ["a"]),
    made("slow", ["b"]),
    made("near", ["a", "b"]),
    made("near", ["a", "c"]),
    made("meeting", ["a", "b"], { is_output: true }),
    made("pace", ["c"], { value: "fast" }),
  ];

  it("names lanes as rules write them", () => {
    expect([lanes[2]!, lanes[5]!, made("alarm", [])].map(laneName)).toEqual(["near(a, b)", "pace(c) = fast", "alarm"]);
  });

  it("finds the answer to explain by its beginning or its end", () => {
    const all = [...lanes, made("near", ["b", "a"], { intervals: [{ start: 30, end: null, began: null, ended: null }] })];
    const found = (what: string, args: string[], at: number) => {
      const one = answered(all, { what, args, at });
      return one === null ? null : [laneName(one.lane), one.interval.start];
    };
    expect([found("near", ["a", "b"], 20), found("near", ["a", "b"], 30), found("near", ["a", "b"], 25), found("far", ["a"], 10)]).toEqual([
      ["near(a, b)", 10],
      ["near(b, a)", 30],
      ["near(a, b)", 10],
      null,
    ]);
  });

  it("lists groundings of outputs first, and shows all lanes of a grounding", () => {
    expect(groundings(lanes)[0]).toEqual(["a", "b"]);
    expect(shownLanes(lanes, { grounding: ["a", "b"], words: "" }).map(laneName)).toEqual([
      "slow(a)",
      "slow(b)",
      "near(a, b)",
      "meeting(a, b)",
    ]);
    expect(shownLanes(lanes, { grounding: null, words: "NEAR c" }).map(laneName)).toEqual(["near(a, c)"]);
  });

  it("finds the interval at a time, else the nearest in reach; open ones reach on", () => {
    const two = made("x", [], {
      intervals: [
        { start: 10, end: 20, began: null, ended: null },
        { start: 40, end: null, began: null, ended: null },
      ],
    });
    expect(intervalAt(two, 15, 5)?.start).toBe(10);
    expect(intervalAt(two, 37, 5)?.start).toBe(40);
    expect(intervalAt(two, 30, 5)).toBeNull();
    expect(intervalAt(two, 10_000, 5)?.start).toBe(40);
  });

  it("reads the server's answer and the lines of a rule", () => {
    const answer = sandboxAnswer({
      from: null,
      to: null,
      rows: 0,
      entities: null,
      rules: [{ line: 4, text: "a :-\n  b." }],
      lanes: [{ ...lanes[0]!, intervals: [{ start: 1, end: null, began: { rule: 0, because: ["x"] }, ended: null }] }],
    });
    expect(answer.lanes[0]!.intervals[0]!.began!.because).toEqual(["x"]);
    expect(ruleLines(answer.rules[0]!)).toEqual([4, 5]);
  });
});

describe("faults of empty fields", () => {
  it("are shown at the field, in the language of the page", () => {
    for (const message of ["the key 'program' is missing", "der Schlüssel 'program' fehlt"])
      expect(faultInForm({ pointer: "", message })).toEqual({
        pointer: "/program",
        message: "No rules yet: write some, or begin with a template.",
      });
    expect(faultInForm({ pointer: "/program", message: "line 1" })).toEqual({ pointer: "/program", message: "line 1" });
    expect(faultInForm({ pointer: "", message: "the key 'other' is missing" }).pointer).toBe("");
  });
});
