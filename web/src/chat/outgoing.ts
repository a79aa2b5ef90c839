/** The queue of this browser: sent when something is typed, when the line is back, and by a timer. */
import { effect, signal } from '@preact/signals';
import { isSignedIn, Refusal } from '../api.ts';
import { connection } from '../live.ts';
import { type Attached, createQueue, type Delivery, type Waiting } from './queue.ts';
import { deliver, newId } from './requests.ts';

/** A working line does not mean that requests work. */
const AGAIN_MS = 2_000;
/** An arrived message is shown from here until the conversation has it. */
const ARRIVED_MS = 5_000;

export const waiting = signal<Waiting[]>([]);
export const arrived = signal<Waiting[]>([]);

const queue = createQueue(localStorage, `coterie message ${location.pathname} `, attempt, (message) => {
  waiting.value = queue.waiting();
  if (message === null) return;
  arrived.value = [...arrived.value, message];
  setTimeout(() => showNoMore(message.id), ARRIVED_MS);
});

export function say(chat: string, text: string, files: Attached[] = []): void {
  queue.add({ id: newId(), chat, text, files, at: Date.now() });
  void send();
}

/** Takes back what the gateway has refused. */
export function takeBack(id: string): void {
  queue.remove(id);
}

export function showNoMore(id: string): void {
  arrived.value = arrived.value.filter((each) => each.id !== id);
}

let again: ReturnType<typeof setTimeout> | null = null;

async function send(): Promise<void> {
  if (again !== null) clearTimeout(again);
  again = null;
  // Signing in sends again.
  if ((await queue.send()) === 'done' || isSignedIn.peek() === false) return;
  again ??= setTimeout(send, AGAIN_MS);
}

async function attempt(message: Waiting): Promise<Delivery> {
  try {
    await deliver(message);
    return { kind: 'taken' };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { status } = error;
    const isForGood = status >= 400 && status < 500 && ![401, 403, 408, 425, 429].includes(status);
    return isForGood ? { kind: 'refused', reason: error.message } : { kind: 'again' };
  }
}

waiting.value = queue.waiting();
effect(() => {
  if (connection.value === 'connected' && isSignedIn.value) void send();
});
// Another tab has added or sent something.
addEventListener('storage', () => {
  waiting.value = queue.waiting();
});
