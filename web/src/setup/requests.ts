/** Requests of the place Setup, and the state that they answer. */
import { signal } from '@preact/signals';
import type { FoundServer, ModelWish, SetupState, TokenPlatform, Tried } from '../../../src/core/setup.ts';
import { ask, Refusal, read } from '../api.ts';

const AT = 'api/board/setup';

/** null until the gateway has answered. */
export const setup = signal<SetupState | null>(null);

/** A saved configuration is taken in meanwhile: no answer is no fault. */
export async function reread(): Promise<void> {
  try {
    setup.value = await read<SetupState>(AT);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

export async function servers(): Promise<FoundServer[]> {
  return (await read<{ servers: FoundServer[] }>(`${AT}/servers`)).servers;
}

export interface SavedKeys {
  file: string;
  isSame: boolean;
  warnings: string[];
}

async function post<Body>(path: string, json: unknown, method: 'POST' | 'PUT' = 'POST'): Promise<Body> {
  return (await ask<Body>(`${AT}/${path}`, { method, json })).body;
}

export const tryModel = (wish: ModelWish) => post<Tried>('model/try', wish);
export const saveModel = (wish: ModelWish) => post<SavedKeys>('model', wish, 'PUT');
export const checkToken = (platform: TokenPlatform, token: string) =>
  post<Tried>('token/check', { platform, token });
export const saveToken = (platform: TokenPlatform, token: string) =>
  post<SavedKeys>('token', { platform, token }, 'PUT');
export const connectWhatsApp = () => post<SavedKeys>('whatsapp', {});
export const linkCode = (phone: string) => post<Tried>('whatsapp/code', { phone });
export const leave = (how: 'finished' | 'skipped') => post<object>('leave', { how });
