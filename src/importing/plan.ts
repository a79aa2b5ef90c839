/** What goes where when a folder is brought in. */

export type Place = 'groups' | 'workspace' | 'skills';

export interface Step {
  /** Names from the source's root; null: it is made, of `text` alone, where nothing stands. */
  from: readonly string[] | null;
  /** Below `groups/`, `data/workspace` or `data/skills`. */
  place: Place;
  to: readonly string[];
  /** Never under its own name, even where nothing stands there. */
  isAlwaysBeside?: true;
  /** Passed over where it is no text. */
  isTextAlone?: true;
  /** What stands before the content. */
  text?: string;
  /** What stands behind the content: other files of the source, each below a heading of its own. */
  more?: { from: readonly string[]; heading: string }[];
  /** Without its front matter, which says nothing here. */
  isBodyAlone?: true;
  /** What can be done with it now: a sentence for the operator. */
  hint?: string;
}

export interface Plan {
  steps: Step[];
  /** What was recognised, for people: `an OpenClaw workspace`. */
  found: string[];
}

/** What may be the name of a chat, and of a persona, in `groups/`; and which channels there are. */
export interface Names {
  isChatId(name: string): boolean;
  isPersonaId(name: string): boolean;
  /** The id of a persona of that name; empty: there is none. */
  idOf(name: string): string;
  channels: readonly string[];
}
