/** What is known of groups: their titles, and who is in them. Asked of WhatsApp once, and kept until it changes. */
import type { GroupMetadata } from '@whiskeysockets/baileys';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { bounded } from '../kit/bounded.js';
import { isSamePerson, type Person, personOf } from './jid.js';

const MOST_TITLES = 2_000;
const MOST_GROUPS = 200;
const KEPT_MS = 600_000;
/** Somebody may just have been made one. */
const NO_KEPT_MS = 3_000;
/** A group that cannot be asked for is not asked for with every message. */
const PATIENCE_MS = 60_000;

export interface Groups {
  /** null until it is known; then somebody has begun to ask. */
  titleOf(group: string): string | null;
  /** Throws when WhatsApp cannot be asked. */
  metadata(group: string): Promise<GroupMetadata>;
  /** Throws when WhatsApp cannot be asked. */
  isAdministrator(group: string, sender: string): Promise<boolean>;
  /** As far as is known just now. */
  manages(group: string, person: Person): boolean;
  changed(groups: Partial<GroupMetadata>[]): void;
  membersChanged(group: string): void;
  /** What happened meanwhile nobody told. */
  wasAway(): void;
}

interface Parts {
  ask(group: string): Promise<GroupMetadata>;
  met(person: Person): void;
  clock: Clock;
  log: Log;
}

interface Kept {
  askedAt: number;
  metadata: GroupMetadata;
}

export function createGroups({ ask, met, clock, log }: Parts): Groups {
  const titles = bounded<string, string>(MOST_TITLES);
  let known = bounded<string, Kept>(MOST_GROUPS);
  const asking = new Map<string, Promise<Kept>>();
  const failed = bounded<string, number>(MOST_GROUPS);

  function fetch(group: string): Promise<Kept> {
    const running = asking.get(group);
    if (running) return running;
    const asked = look(group).finally(() => asking.delete(group));
    asking.set(group, asked);
    return asked;
  }

  async function look(group: string): Promise<Kept> {
    const askedAt = clock.now();
    try {
      const metadata = await ask(group);
      const kept = { askedAt, metadata };
      known.set(group, kept);
      failed.delete(group);
      if (metadata.subject) titles.set(group, metadata.subject);
      for (const one of metadata.participants) met(personOf(one.id, one.phoneNumber, one.lid));
      return kept;
    } catch (error) {
      failed.set(group, askedAt);
      throw error;
    }
  }

  function isKept(kept: Kept | undefined, ms: number): kept is Kept {
    return kept !== undefined && clock.now() - kept.askedAt < ms;
  }

  return {
    titleOf(group) {
      const title = titles.get(group);
      if (title !== undefined) return title;
      if (clock.now() - (failed.get(group) ?? Number.NEGATIVE_INFINITY) >= PATIENCE_MS) {
        fetch(group).catch((error) =>
          log.debug(
            { channel: 'whatsapp', group, reason: describe(error) },
            'a group could not be asked for',
          ),
        );
      }
      return null;
    },

    async metadata(group) {
      const kept = known.get(group);
      return (isKept(kept, KEPT_MS) ? kept : await fetch(group)).metadata;
    },

    async isAdministrator(group, sender) {
      const kept = known.get(group);
      if (isKept(kept, KEPT_MS) && isAdministratorOf(kept.metadata, sender)) return true;
      if (isKept(kept, NO_KEPT_MS)) return false;
      return isAdministratorOf((await fetch(group)).metadata, sender);
    },

    manages(group, { phone, lid }) {
      const metadata = known.get(group)?.metadata;
      return (
        metadata !== undefined && [phone, lid].some((jid) => jid !== null && isAdministratorOf(metadata, jid))
      );
    },

    changed(groups) {
      for (const { id, subject } of groups) {
        if (!id) continue;
        if (subject) titles.set(id, subject);
        known.delete(id);
      }
    },

    membersChanged: (group) => known.delete(group),

    wasAway() {
      known = bounded(MOST_GROUPS);
    },
  };
}

function isAdministratorOf({ participants }: GroupMetadata, sender: string): boolean {
  return participants.some(
    ({ id, phoneNumber, lid, admin }) =>
      (admin === 'admin' || admin === 'superadmin') && isSamePerson(personOf(id, phoneNumber, lid), sender),
  );
}
