/**
 * Whether we may write to a person (463): their token has to stand in the message (rc14, messages-send.js), and an account
 * that is restricted may not write to whom it does not know. Tokens come as notifications and with the history that the
 * own phone sends after linking (rc14, messages-recv.js and process-message.js).
 */
import type { BinaryNode, proto } from '@whiskeysockets/baileys';
import { proto as types } from '@whiskeysockets/baileys';
import { bytesOf, child, seconds, stanza } from './whatsapp-nodes.js';
import { isOwn, type People, type Person } from './whatsapp-people.js';
import type { Letter } from './whatsapp-post.js';
import type { Peer } from './whatsapp-words.js';

export interface Gate {
  demandTokens(on: boolean): void;
  restrict(until: number | null): void;
  /** Whether a message of ours is refused. */
  refuses(message: BinaryNode): boolean;
}

export const RESTRICTED = 463;

export function makeGate(people: People): Gate {
  let demanding = false;
  let restrictedUntil = 0;
  return {
    demandTokens(on) {
      demanding = on;
    },
    restrict(until) {
      restrictedUntil = until ?? 0;
    },
    refuses(message) {
      const person = people.at(message.attrs.to ?? '');
      if (person === null || isOwn(people, person)) return false;
      if (!person.met && Date.now() < restrictedUntil) return true;
      return demanding && bytesOf(child(message, 'tctoken'))?.equals(person.token) !== true;
    },
  };
}

export function tokenLetter({ peer, token }: Person, id: string): Letter {
  const t = seconds(Date.now());
  const attributes = { from: peer.lid, type: 'privacy_token', id, t, sender_lid: peer.lid };
  const tokens = [stanza('token', { type: 'trusted_contact', t }, token)];
  const seal = async () => stanza('notification', attributes, [stanza('tokens', {}, tokens)]);
  return { id, class: 'notification', seal };
}

/** News of a restriction, as rc14 reads it. */
export function restrictionLetter(until: number | null, id: string): Letter {
  const told = {
    is_active: until !== null,
    ...(until === null ? {} : { time_enforcement_ends: seconds(until), enforcement_type: 'DEFAULT' }),
  };
  const update = Buffer.from(JSON.stringify({ data: { xwa2_notify_account_reachout_timelock: told } }));
  const attributes = { from: 's.whatsapp.net', type: 'mex', id, t: seconds(Date.now()) };
  const operation = { op_name: 'NotificationUserReachoutTimelockUpdate' };
  const seal = async () => stanza('notification', attributes, [stanza('update', operation, update)]);
  return { id, class: 'notification', seal };
}

export function historyOf(
  chats: { with: Peer; text: string; token: boolean }[],
  people: People,
): proto.IHistorySync {
  const at = Math.floor(Date.now() / 1000);
  return {
    syncType: types.HistorySync.HistorySyncType.INITIAL_BOOTSTRAP,
    chunkOrder: 1,
    progress: 100,
    conversations: chats.map(({ with: peer, text, token }, n) => ({
      id: peer.lid,
      pnJid: peer.pn,
      conversationTimestamp: at,
      messages: [
        {
          message: {
            key: { remoteJid: peer.lid, fromMe: false, id: `3AHISTORY${n}` },
            message: { conversation: text },
            messageTimestamp: at,
          },
          msgOrderId: 1,
        },
      ],
      ...(token ? { tcToken: people.of(peer).token, tcTokenTimestamp: at } : {}),
    })),
  };
}
