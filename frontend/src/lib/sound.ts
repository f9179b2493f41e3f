/**
 * Sounds of new alerts by severity: only if the reader chose them, and only after a click or
 * key, as browsers require.
 */

import { SEVERITIES, type Severity } from "./shapes";
import { soundFrom } from "./preferences";

interface Tone {
  hertz: number;
  times: number;
  /** 0 to 1. */
  gain: number;
}
const TONES: Readonly<Record<Severity, Tone>> = {
  info: { hertz: 330, times: 1, gain: 0.05 },
  low: { hertz: 440, times: 1, gain: 0.08 },
  high: { hertz: 660, times: 2, gain: 0.12 },
  critical: { hertz: 880, times: 3, gain: 0.18 },
};
const TONE_S = 0.14;
const PAUSE_S = 0.08;
/** For this long a sound suppresses those of alerts that are not more severe. */
const APART_MS = 2_000;

let context: AudioContext | null = null;
let last: { severity: Severity; at: number } | null = null;

/**
 * Whether an alert makes a sound now: severe enough, and not suppressed by a recent
 * one. Times in milliseconds.
 */
export function isHeard(
  severity: Severity,
  from: Severity | null,
  before: { severity: Severity; at: number } | null,
  now: number,
): boolean {
  if (from === null || SEVERITIES.indexOf(severity) < SEVERITIES.indexOf(from)) return false;
  return before === null || now - before.at >= APART_MS || SEVERITIES.indexOf(severity) > SEVERITIES.indexOf(before.severity);
}

/** Sounds can be played after the reader's first click or key. */
export function armSound(): void {
  const wake = (): void => {
    if (soundFrom() === null) return;
    context ??= new AudioContext();
    void context.resume();
  };
  document.addEventListener("pointerdown", wake);
  document.addEventListener("keydown", wake);
}

export function soundAlert(severity: Severity): void {
  const now = Date.now();
  if (!isHeard(severity, soundFrom(), last, now)) return;
  if (context?.state !== "running") return;
  last = { severity, at: now };
  play(context, TONES[severity]);
}

/** Played on a click, independent of the settings. */
export async function trySound(severity: Severity): Promise<void> {
  context ??= new AudioContext();
  await context.resume();
  play(context, TONES[severity]);
}

function play(on: AudioContext, { hertz, times, gain }: Tone): void {
  for (let n = 0; n < times; n += 1) {
    const begin = on.currentTime + n * (TONE_S + PAUSE_S);
    const tone = new OscillatorNode(on, { type: "sine", frequency: hertz });
    const volume = new GainNode(on, { gain: 0 });
    // Without a ramp at both ends there is an audible click.
    volume.gain.setValueAtTime(0, begin);
    volume.gain.linearRampToValueAtTime(gain, begin + 0.02);
    volume.gain.linearRampToValueAtTime(0, begin + TONE_S);
    tone.connect(volume).connect(on.destination);
    tone.start(begin);
    tone.stop(begin + TONE_S);
  }
}
