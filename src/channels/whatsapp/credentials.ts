/** Our identity as a linked device: credentials, Signal keys under `<type>-<id>`, time of linking. */
import {
  type AuthenticationCreds,
  BufferJSON,
  initAuthCreds,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
} from '@whiskeysockets/baileys';
import type { ChannelState } from '../../core/channel.js';
import { createMutex } from '../../core/concurrency.js';
import { numberOf, personOf, userOf } from './ids.js';
import type { OwnAccount } from './inbound.js';
import { alertsIn } from './restrictions.js';

export type Credentials = Awaited<ReturnType<typeof openCredentials>>;

const { AppStateSyncKeyData } = proto.Message;
const CREDS = 'creds';
const PAIRED_AT = 'paired-at';
/** The WhatsApp Web version that was looked up. Survives the end of a link. */
export const VERSION = 'version';

export async function openCredentials(state: ChannelState) {
  const found = await state.get([CREDS, PAIRED_AT]);
  const creds: AuthenticationCreds = decode(found.get(CREDS)) ?? initAuthCreds();
  let pairedAt = Number(found.get(PAIRED_AT) ?? 0);
  let isRetired = false;
  let isUnsaved = false;
  let saved: Promise<void> = Promise.resolve();
  const inTurn = createMutex();

  function write(values: () => ReadonlyMap<string, string | null>): Promise<void> {
    return inTurn(async () => {
      if (!isRetired) await state.set(values());
    });
  }

  /** Saves `auth.creds`; at most one write is queued behind the running one. */
  function save(): void {
    if (isUnsaved) return;
    isUnsaved = true;
    saved = write(() => {
      isUnsaved = false;
      return new Map([
        [CREDS, encode(creds)],
        [PAIRED_AT, String(pairedAt)],
      ]);
    });
    // The library ignores failures; `settled` reports them.
    saved.catch(() => {});
  }

  async function get<Type extends keyof SignalDataTypeMap>(type: Type, ids: string[]) {
    const values = await state.get(ids.map((id) => `${type}-${id}`));
    const keys: Record<string, SignalDataTypeMap[Type]> = {};
    for (const id of ids) {
      const value = decode<SignalDataTypeMap[Type]>(values.get(`${type}-${id}`));
      if (value === null) continue;
      // Such keys are objects with methods, which JSON does not keep.
      const hasMethods = type === 'app-state-sync-key';
      keys[id] = hasMethods
        ? (AppStateSyncKeyData.fromObject(value as object) as unknown as typeof value)
        : value;
    }
    return keys;
  }

  return {
    auth: { creds, keys: { get, set: (data: SignalDataSet) => write(() => valuesOf(data)) } },
    /** Time of linking, ms; 0 before. */
    pairedAt: () => pairedAt,
    linked(at: number): void {
      pairedAt = at;
      save();
    },
    save,
    /** Resolves when everything is on disk; rejects if a write failed. */
    async settled(): Promise<void> {
      await saved;
      await inTurn(() => {});
    },
    retire(): void {
      isRetired = true;
    },
  };
}

/** Whether the gateway is linked: an unfinished pairing leaves a number, but no account. */
export function isLinked(creds: AuthenticationCreds): boolean {
  return creds.account !== undefined && creds.me !== undefined;
}

/** A code was asked for and not typed: it leaves credentials with which no other code can be had. */
export function isHalfLinked(creds: AuthenticationCreds): boolean {
  return creds.account === undefined && creds.me !== undefined;
}

/** Paired, but never logged in: only a login hands keys to WhatsApp. */
export function isUnused(creds: AuthenticationCreds): boolean {
  return isLinked(creds) && creds.nextPreKeyId === 1;
}

/** Forgets the link and everything that belongs to it. */
export async function forgetLink(state: ChannelState): Promise<void> {
  const kept = await state.get([VERSION]);
  await state.clear();
  if (kept.size > 0) await state.set(kept);
}

function valuesOf(data: SignalDataSet): ReadonlyMap<string, string | null> {
  const entries = Object.entries(data).flatMap(([type, keys]) =>
    Object.entries(keys).map(([id, key]) => [`${type}-${id}`, key ? encode(key) : null] as const),
  );
  return new Map(entries);
}

function encode(value: unknown): string {
  return JSON.stringify(value, BufferJSON.replacer);
}

function decode<T>(text: string | undefined): T | null {
  return text === undefined ? null : (JSON.parse(text, BufferJSON.reviver) as T);
}

/** The library's placeholder for an unknown name. */
const NO_NAME = '~';

/** The linked account; null until linked. */
export function meIn(creds: AuthenticationCreds): OwnAccount | null {
  const { phone, lid } = personOf(creds.me?.id, creds.me?.lid);
  if (!isLinked(creds) || phone === null) return null;
  const name = creds.me?.name?.trim();
  return { phone, lid, name: name && name !== NO_NAME ? name : null };
}

/** The account's name in the store: its number. */
export function accountOf({ phone }: OwnAccount): string {
  return userOf(phone);
}

/** For `doctor`. Does not log in: that would end the connection of a running gateway. */
export async function check(state: ChannelState): Promise<{ identity: string; warnings: string[] }> {
  const creds = decode<AuthenticationCreds>((await state.get([CREDS])).get(CREDS));
  const me = creds && meIn(creds);
  const warnings = await alertsIn(state);
  if (!me) {
    const how =
      'start the gateway and scan the QR code that it shows (on the phone: Linked devices), or run "coterie pair whatsapp --phone NUMBER"';
    return { identity: 'not linked', warnings: [`not linked to a phone yet: ${how}`, ...warnings] };
  }
  const number = numberOf({ ...me, lid: null });
  return { identity: me.name === null ? number : `${number} (${me.name})`, warnings };
}
