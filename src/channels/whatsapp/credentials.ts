/**
 * What makes us a linked device: the credentials under one name, each key of the Signal protocol under
 * `<type>-<id>`, and since when we are linked. Nothing of it is kept in memory, but for what the library
 * holds: only what is on the disk counts.
 */
import {
  type AuthenticationCreds,
  type AuthenticationState,
  BufferJSON,
  initAuthCreds,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
} from '@whiskeysockets/baileys';
import type { ChannelState } from '../../core/channel.js';
import { numberOf, personOf, userOf } from './ids.js';
import type { Me } from './inbound.js';
import { troublesIn } from './restrictions.js';

export interface Credentials {
  auth: AuthenticationState;
  /** Since when this gateway is linked, ms; 0 until then. */
  pairedAt(): number;
  linked(at: number): void;
  /** Saves what has changed in `auth.creds`; at most one write waits behind the one that runs. */
  save(): void;
  /** Resolves when everything is on the disk; rejects when it could not be brought there. */
  settled(): Promise<void>;
  /** From now on nothing is written any more. */
  retire(): void;
}

const CREDS = 'creds';
const PAIRED_AT = 'paired-at';

export async function openCredentials(state: ChannelState): Promise<Credentials> {
  const found = await state.get([CREDS, PAIRED_AT]);
  const creds: AuthenticationCreds = decode(found.get(CREDS)) ?? initAuthCreds();
  let pairedAt = Number(found.get(PAIRED_AT) ?? 0);
  let retired = false;
  let unsaved = false;
  let writing: Promise<void> = Promise.resolve();

  function write(values: () => ReadonlyMap<string, string | null>): Promise<void> {
    const written = writing.then(async () => {
      if (!retired) await state.set(values());
    });
    writing = written.catch(() => {});
    return written;
  }

  let saved: Promise<void> = Promise.resolve();

  function save(): void {
    if (unsaved) return;
    unsaved = true;
    const done = write(() => {
      unsaved = false;
      return new Map([
        [CREDS, encode(creds)],
        [PAIRED_AT, String(pairedAt)],
      ]);
    });
    saved = done;
    // A failure reaches whoever waits for `settled`; the library takes none.
    done.catch(() => {});
  }

  return {
    auth: {
      creds,
      keys: {
        async get<Type extends keyof SignalDataTypeMap>(type: Type, ids: string[]) {
          const values = await state.get(ids.map((id) => nameOf(type, id)));
          const keys: Record<string, SignalDataTypeMap[Type]> = {};
          for (const id of ids) {
            const value = decode<SignalDataTypeMap[Type]>(values.get(nameOf(type, id)));
            if (value !== null) keys[id] = revived(type, value);
          }
          return keys;
        },
        set: (data) => write(() => valuesOf(data)),
      },
    },
    pairedAt: () => pairedAt,
    linked(at) {
      pairedAt = at;
      save();
    },
    save,
    async settled() {
      await saved;
      await writing;
    },
    retire() {
      retired = true;
    },
  };
}

/** Whether somebody has linked this gateway: a pairing that was only begun leaves a number, but no account. */
export function isLinked(creds: AuthenticationCreds): boolean {
  return creds.account !== undefined && creds.me !== undefined;
}

/** A pairing is through, but nobody has logged in with it: only then keys are handed to WhatsApp. */
export function isUnused(creds: AuthenticationCreds): boolean {
  return isLinked(creds) && creds.nextPreKeyId === 1;
}

/** Forgets the link, with all that belongs to it. */
export async function forgetLink(state: ChannelState): Promise<void> {
  const kept = await state.get([VERSION]);
  await state.clear();
  if (kept.size > 0) await state.set(kept);
}

/** The credentials as they are kept; null where there are none. */
export async function readCredentials(state: ChannelState): Promise<AuthenticationCreds | null> {
  return decode<AuthenticationCreds>((await state.get([CREDS])).get(CREDS));
}

function nameOf(type: string, id: string): string {
  return `${type}-${id}`;
}

function valuesOf(data: SignalDataSet): ReadonlyMap<string, string | null> {
  const values = new Map<string, string | null>();
  for (const [type, keys] of Object.entries(data)) {
    for (const [id, key] of Object.entries(keys ?? {})) {
      values.set(nameOf(type, id), key === null || key === undefined ? null : encode(key));
    }
  }
  return values;
}

/** Keys of one type are objects with methods, which JSON does not keep. */
function revived<Type extends keyof SignalDataTypeMap>(
  type: Type,
  value: SignalDataTypeMap[Type],
): SignalDataTypeMap[Type] {
  if (type !== 'app-state-sync-key') return value;
  return proto.Message.AppStateSyncKeyData.fromObject(value as object) as unknown as SignalDataTypeMap[Type];
}

function encode(value: unknown): string {
  return JSON.stringify(value, BufferJSON.replacer);
}

function decode<T>(text: string | undefined): T | null {
  return text === undefined ? null : (JSON.parse(text, BufferJSON.reviver) as T);
}

/** What the library calls somebody whose name it does not know. */
const NO_NAME = '~';

/** null until this gateway is linked. */
export function meIn(creds: AuthenticationCreds): Me | null {
  const { phone, lid } = personOf(creds.me?.id, creds.me?.lid);
  if (!isLinked(creds) || phone === null) return null;
  const name = creds.me?.name?.trim();
  return { phone, lid, name: name && name !== NO_NAME ? name : null };
}

/** The name of the account in the store: its number. */
export function accountOf({ phone }: Me): string {
  return userOf(phone);
}

/** For `doctor`. It does not log in: that would end the connection of a gateway that runs. */
export async function check(state: ChannelState): Promise<{ identity: string; warnings: string[] }> {
  const creds = await readCredentials(state);
  const me = creds && meIn(creds);
  const known = await troublesIn(state);
  if (!me) {
    const how =
      'start the gateway and scan the QR code that it shows (on the phone: Linked devices), or run "coterie pair whatsapp --phone NUMBER"';
    return { identity: 'not linked', warnings: [`not linked to a phone yet: ${how}`, ...known] };
  }
  const number = numberOf({ ...me, lid: null });
  return { identity: me.name === null ? number : `${number} (${me.name})`, warnings: known };
}

/** Under this name the channel's state has what was looked up, and when. It is kept when a link is forgotten. */
export const VERSION = 'version';
