/** The worst state of the gateway, for the head of every place: read at each change, and every half minute while seen. */
import { signal } from '@preact/signals';
import type { OperationsLevel } from '../../../src/board/protocol-operations.ts';
import { Refusal, read } from '../api.ts';
import { onChange } from '../live.ts';

export const ORDER: Record<OperationsLevel, number> = { bad: 0, warn: 1, good: 2 };

export function worstOf(levels: readonly OperationsLevel[]): OperationsLevel {
  return [...levels].sort((a, b) => ORDER[a] - ORDER[b])[0] ?? 'good';
}

/** null: not known. */
export const worst = signal<OperationsLevel | null>(null);

const EVERY_MS = 30_000;

/** Returns the function that stops watching. */
export function watchWorst(): () => void {
  const reread = () => void (document.visibilityState === 'visible' && readWorst());
  const unlisten = onChange('operations', reread);
  const timer = setInterval(reread, EVERY_MS);
  reread();
  return () => {
    unlisten();
    clearInterval(timer);
    worst.value = null;
  };
}

async function readWorst(): Promise<void> {
  try {
    worst.value = (await read<{ level: OperationsLevel }>('api/board/operations/level')).level;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    worst.value = null;
  }
}
