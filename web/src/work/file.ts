/** A file of the workspace that is edited here: read with its tag, and written only over what was read. */
import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { ask, isSignedIn, Refusal, sentenceOf } from '../api.ts';
import { withLineEnds } from './plan.ts';

interface Version {
  content: string;
  etag: string;
}

export interface EditedFile {
  /** With the file's own line ends; null: it was not read yet. */
  text: ReadonlySignal<string | null>;
  isChanged: ReadonlySignal<boolean>;
  /** The file on disk, if it changed while it was edited here. */
  conflict: ReadonlySignal<Version | null>;
  outcome: Signal<'saving' | 'saved' | null>;
  /** A sentence; empty: the gateway did not answer. */
  fault: ReadonlySignal<string | null>;
  /** Reads it again; what was typed stays. */
  read(): Promise<void>;
  change(text: string): void;
  /** `typed`: of a field, which knows one line end only. */
  type(typed: string): void;
  save(): Promise<void>;
  keepMine(typed: string): Promise<void>;
  takeTheirs(): void;
  cancel(): void;
}

const files = new Map<string, EditedFile>();
// Nothing of before is there for whoever signs in next.
effect(() => {
  if (isSignedIn.value === false) files.clear();
});
addEventListener('beforeunload', (event) => {
  if ([...files.values()].some(({ isChanged }) => isChanged.peek())) event.preventDefault();
});

/** The same one as long as the page is open: whoever looks elsewhere finds their words again. */
export function fileAt(address: string): EditedFile {
  const file = files.get(address) ?? editedFile(address);
  files.set(address, file);
  return file;
}

function editedFile(address: string): EditedFile {
  const known = signal<Version | null>(null);
  const text = signal<string | null>(null);
  const conflict = signal<Version | null>(null);
  const outcome = signal<'saving' | 'saved' | null>(null);
  const fault = signal<string | null>(null);
  const isChanged = computed(() => text.value !== null && text.value !== known.value?.content);

  async function onDisk(): Promise<Version> {
    const { body, etag } = await ask<{ content: string }>(address);
    return { content: body.content, etag: etag ?? '' };
  }

  /** The fault says why it was not written. */
  async function write(content: string, over: Version): Promise<void> {
    outcome.value = 'saving';
    fault.value = null;
    try {
      const headers = { 'if-match': over.etag };
      const { etag } = await ask(address, { method: 'PUT', json: { content }, headers });
      batch(() => {
        known.value = { content, etag: etag ?? '' };
        outcome.value = 'saved';
      });
    } catch (error) {
      outcome.value = null;
      if (error instanceof Refusal && error.status === 409) await meet(content);
      else fault.value = sentenceOf(error);
    }
  }

  /** It changed meanwhile: to the same, or a person chooses. */
  async function meet(content: string): Promise<void> {
    try {
      const theirs = await onDisk();
      if (theirs.content === content) {
        known.value = theirs;
        outcome.value = 'saved';
      } else conflict.value = theirs;
    } catch (error) {
      fault.value = sentenceOf(error);
    }
  }

  function change(next: string): void {
    text.value = next;
    if (outcome.value === 'saved') outcome.value = null;
  }

  return {
    ...{ text, isChanged, conflict, outcome, fault, change },
    async read() {
      try {
        const found = await onDisk();
        batch(() => {
          if (!isChanged.peek() && outcome.peek() !== 'saving') {
            if (found.content !== text.peek()) outcome.value = null;
            known.value = found;
            text.value = found.content;
          }
          fault.value = null;
        });
      } catch (error) {
        const words = sentenceOf(error);
        // The live line says when to try again; what is there stays.
        if (text.peek() === null) fault.value = words;
      }
    },
    type: (typed) => change(withLineEnds(text.peek() ?? '', typed)),
    async save() {
      const [content, over] = [text.peek(), known.peek()];
      if (content !== null && over !== null && outcome.peek() !== 'saving') await write(content, over);
    },
    async keepMine(typed) {
      const theirs = conflict.peek();
      if (theirs === null) return;
      const mine = withLineEnds(text.peek() ?? '', typed);
      batch(() => {
        text.value = mine;
        conflict.value = null;
      });
      await write(mine, theirs);
    },
    takeTheirs() {
      batch(() => {
        known.value = conflict.peek();
        text.value = conflict.peek()?.content ?? null;
        conflict.value = null;
      });
    },
    cancel() {
      conflict.value = null;
    },
  };
}
