/**
 * Step 5, the model: an answer that is being written, as the events of a stream. Whoever writes shows all of its text
 * again and again; told is what is new, and a restart where the text does not go on from what was told.
 */
import type { ModelEvent } from '../core/model.js';

export type StreamEnd = ModelEvent & { kind: 'done' | 'failed' };

/** All visible text so far; less than before, or another, where it begins anew. */
export type Shows = (text: string) => void;

/** `write` must not reject. What comes faster than it is read is told in one piece. */
export async function* telling(write: (shows: Shows) => Promise<StreamEnd>): AsyncGenerator<ModelEvent> {
  let written = '';
  let end: StreamEnd | null = null;
  let told = '';
  let wake = () => {};
  void write((text) => {
    written = text;
    wake();
  }).then((event) => {
    end = event;
    wake();
  });
  for (;;) {
    // Read anew each time: it comes from outside of this loop.
    const last = end as StreamEnd | null;
    const text = last?.kind === 'done' ? last.text : written;
    if (text === told) {
      if (last !== null) {
        yield last;
        return;
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    } else if (text.startsWith(told)) {
      const delta = text.slice(told.length);
      told = text;
      yield { kind: 'text', delta };
    } else {
      told = '';
      yield { kind: 'restart' };
    }
  }
}
