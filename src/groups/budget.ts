/** How much of a file goes into a prompt, and the marker that says so: nothing is ever cut without one. */
import { cutMarker } from '../core/cut.js';

export interface Cut {
  text: string;
  /** How many characters of the trimmed text are shown. */
  kept: number;
}

/** At most `max` characters of the trimmed text, never half a character, and behind it which limit cut it. */
export function cut(text: string, max: number, limit: string): Cut {
  const trimmed = text.trim();
  if (trimmed.length <= max) return { text: trimmed, kept: trimmed.length };
  const halves =
    /[\uD800-\uDBFF]/.test(trimmed.charAt(max - 1)) && /[\uDC00-\uDFFF]/.test(trimmed.charAt(max));
  const kept = halves ? max - 1 : max;
  return { text: `${trimmed.slice(0, kept)}\n\n${cutMarker(limit, max)}`, kept };
}

/** Whether a text carries such a marker: then it is a copy of something cut, and must not replace the whole. */
export function hasMarker(text: string): boolean {
  return /<<truncated due to [a-z-]+=\d+>>/.test(text);
}
