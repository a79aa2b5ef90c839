/** Requests to the gateway that serves this page, the only server it knows. Addresses are relative to the page. */
import { signal } from '@preact/signals';

/** Whether the gateway lets us in; null until it has answered. */
export const isSignedIn = signal<boolean | null>(null);

/** The gateway refused, or could not be reached (status 0). The message is a sentence for people. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The answer's body, if it is JSON. */
    readonly body: Record<string, unknown> = {},
    /** `Retry-After`, in seconds. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

/** The sentence of a refusal; empty: the gateway did not answer. Throws any other error. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Refusal)) throw error;
  return error.message;
}

export interface Answer<Body> {
  body: Body;
  etag: string | null;
}

interface Ask {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  bytes?: Blob;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Throws `Refusal`. An empty answer has the body null. */
export async function ask<Body>(path: string, given: Ask = {}): Promise<Answer<Body>> {
  const { method = 'GET', json, bytes, headers = {}, signal } = given;
  const sent =
    json === undefined
      ? { ...(bytes && { body: bytes }) }
      : { body: JSON.stringify(json), headers: { 'content-type': 'application/json' } };
  const response = await fetch(path, {
    method,
    ...sent,
    headers: {
      ...('headers' in sent && sent.headers),
      ...(bytes && { 'content-type': 'application/octet-stream', 'x-coterie': '1' }),
      ...headers,
    },
    redirect: 'error',
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new Refusal(0, '');
  });
  const body = await response.json().catch(() => null);
  if (response.ok) return { body: body as Body, etag: response.headers.get('etag') };
  if (response.status === 401) isSignedIn.value = false;
  const after = Number(response.headers.get('retry-after') ?? Number.NaN);
  throw new Refusal(response.status, body?.error ?? '', body ?? {}, Number.isNaN(after) ? null : after);
}

export async function read<Body>(path: string, signal?: AbortSignal): Promise<Body> {
  return (await ask<Body>(path, { ...(signal && { signal }) })).body;
}
