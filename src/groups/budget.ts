/** How much of a file goes into a prompt, and the marker that says so: nothing is ever cut without one. */
import { cutAt, cutWithMarker } from '../core/cut.js';

export interface Cut {
  text: string;
  /** How many characters of the trimmed text are shown. */
  kept: number;
}

/** At most `max` characters of the trimmed text, and behind it which limit cut it. */
export function cut(text: string, max: number, limit: string): Cut {
  const trimmed = text.trim();
  return {
    text: cutWithMarker(trimmed, max, limit),
    kept: trimmed.length <= max ? trimmed.length : cutAt(trimmed, max).length,
  };
}

/** Whether a text carries such a marker: then it is a copy of something cut, and must not replace the whole. */
export function hasMarker(text: string): boolean {
  return /<<truncated due to [a-z-]+=\d+>>/.test(text);
}
