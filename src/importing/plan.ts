/** What goes where when a folder is brought in. */

export interface Step {
  /** Names from the source's root; null: it is made, of `text` alone, where nothing stands. */
  from: readonly string[] | null;
  /** Below `groups/`, `data/workspace` or `data/skills`. */
  place: 'groups' | 'workspace' | 'skills';
  to: readonly string[];
  /** Never under its own name, even where nothing stands there. */
  isAlwaysBeside?: true;
  /** Passed over where it is no text. */
  isTextAlone?: true;
  /** What stands before the content. */
  text?: string;
}

export interface Plan {
  steps: Step[];
  /** What was recognised, for people: `an OpenClaw workspace`. */
  found: string[];
}
