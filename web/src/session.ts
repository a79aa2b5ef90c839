/** Whether the gateway lets us in, and the line to it: begun with the page and after signing in. */
import { signal } from '@preact/signals';
import { ask, isSignedIn, Refusal, read } from './api.ts';
import { forgetDrafts } from './kit/drafts.ts';
import { connect, disconnect } from './live.ts';

/** Answer of `hello`. */
interface Hello {
  version: string;
  /** null: nobody signed in here, because there is no token, or because the browser has one from elsewhere. */
  signedInBy?: 'session' | null;
  /** No model is configured, and nobody has finished or skipped the setup. */
  isSetupDue?: boolean;
}

export const hello = signal<Hello | null>(null);

const AGAIN_MS = 1_000;

export async function begin(): Promise<void> {
  try {
    hello.value = await read<Hello>('api/board/hello');
    isSignedIn.value = true;
    connect();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.status !== 401) setTimeout(begin, AGAIN_MS);
  }
}

/** Nothing of before stays on the page. false: the gateway did not answer, and the session lasts. */
export async function signOut(): Promise<boolean> {
  try {
    await ask('api/session', { method: 'DELETE' });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    // It was over already.
    if (error.status !== 401) return false;
  }
  disconnect();
  hello.value = null;
  isSignedIn.value = false;
  forgetDrafts();
  return true;
}
