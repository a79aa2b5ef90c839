/**
 * One request to a model server, from opening it to its last chunk, watched for silence. Throws ServerError;
 * who calls looks at its own signal first.
 */
import type { Clock } from '../core/clock.js';
import { type Answer, createAssembly } from './assembly.js';
import { chunksOf } from './chunks.js';
import { ServerError } from './server-error.js';
import type { RequestBody, Wire } from './wire.js';

export async function attempt(ask: {
  wire: Wire;
  body: RequestBody;
  takenIds: ReadonlySet<string>;
  /** How long nothing may come: before the headers, and between any two pieces of the answer. */
  silenceMs: number;
  /** Told the whole visible text again and again as it grows: from nothing, for what an earlier attempt said is void. */
  shows(text: string): void;
  clock: Clock;
  signal: AbortSignal;
}): Promise<Answer> {
  const { clock, silenceMs, signal } = ask;
  const connection = new AbortController();
  const hangUp = () => connection.abort();
  let lastHeard = clock.now();
  let silent = false;

  let stopWatching = clock.after(silenceMs, watch);
  function watch() {
    const left = lastHeard + silenceMs - clock.now();
    if (left > 0) {
      stopWatching = clock.after(left, watch);
      return;
    }
    silent = true;
    hangUp();
  }

  const heard = () => {
    lastHeard = clock.now();
  };
  const assembly = createAssembly(ask.takenIds);
  signal.addEventListener('abort', hangUp, { once: true });
  if (signal.aborted) hangUp();
  try {
    const body = await ask.wire(ask.body, connection.signal);
    heard();
    ask.shows('');
    for await (const chunk of chunksOf(body, heard, clock)) {
      if (assembly.add(chunk)) ask.shows(assembly.visible());
    }
  } catch (error) {
    hangUp();
    // What was complete is an answer, however its connection ended.
    if (assembly.finish() === null || signal.aborted) {
      if (!silent) throw error;
      throw new ServerError({ kind: 'silent', words: `was silent for ${silenceMs / 1000} s` });
    }
  } finally {
    stopWatching();
    signal.removeEventListener('abort', hangUp);
  }
  if (assembly.finish() === null || assembly.finish() === 'error') {
    throw new ServerError({
      kind: 'broken',
      words: 'broke off its answer without saying that it was finished',
    });
  }
  return assembly.answer();
}
