/** Cuts a file's text for a prompt and marks the cut: text is never shortened silently. */
import { cutAt, cutWithMarker } from './cut.js';

export interface Cut {
  text: string;
  /** The number of characters of the trimmed text that are shown. */
  kept: number;
}

/** At most `max` characters of the trimmed text, followed by a marker that names the limit. */
export function cut(text: string, max: number, limit: string): Cut {
  const trimmed = text.trim();
  return {
    text: cutWithMarker(trimmed, max, limit),
    kept: trimmed.length <= max ? trimmed.length : cutAt(trimmed, max).length,
  };
}

/** Whether a text contains such a marker: then it is a shortened copy and must not replace the original. */
export function hasMarker(text: string): boolean {
  return /<<truncated due to [a-z-]+=\d+>>/.test(text);
}
