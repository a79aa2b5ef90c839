/** The titles of groups, and who is in them and manages them. Asked of WhatsApp once, and kept until it changes. */
import type { GroupMetadata } from '@whiskeysockets/baileys';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { bounded } from '../kit/bounded.js';
import { createLookupCache, isAdministrator } from '../kit/lookup-cache.js';
import { isSamePerson, type Person, personOf } from './jid.js';

const MOST_TITLES = 2_000;
const MOST_GROUPS = 200;
const KEPT_MS = 600_000;
/** After a question that failed, a group is not asked about again for so long. */
const PATIENCE_MS = 60_000;

export interface Groups {
  /** null until it is known; WhatsApp is then being asked. */
  titleOf(group: string): string | null;
  /** Throws when WhatsApp cannot be asked. */
  metadata(group: string): Promise<GroupMetadata>;
  /** Throws when WhatsApp cannot be asked. */
  isAdministrator(group: string, sender: string): Promise<boolean>;
  /** As far as it is known now; WhatsApp is not asked. */
  manages(group: string, person: Person): boolean;
  changed(changes: Partial<GroupMetadata>[]): void;
  membersChanged(group: string): void;
  /** Changes may have been missed: everything is asked anew. */
  wasAway(): void;
}

interface Parts {
  ask(group: string): Promise<GroupMetadata>;
  met(person: Person): void;
  clock: Clock;
  log: Log;
}

export function createGroups({ ask, met, clock, log }: Parts): Groups {
  const titles = bounded<string, string>(MOST_TITLES);
  const failedAt = bounded<string, number>(MOST_GROUPS);
  const groups = createLookupCache(askFor, { most: MOST_GROUPS, clock });

  async function askFor(group: string): Promise<GroupMetadata> {
    try {
      const metadata = await ask(group);
      failedAt.delete(group);
      if (metadata.subject) titles.set(group, metadata.subject);
      for (const one of metadata.participants) met(personOf(one.id, one.phoneNumber, one.lid));
      return metadata;
    } catch (error) {
      failedAt.set(group, clock.now());
      throw error;
    }
  }

  return {
    titleOf(group) {
      const title = titles.get(group);
      if (title !== undefined) return title;
      if (clock.now() - (failedAt.get(group) ?? Number.NEGATIVE_INFINITY) >= PATIENCE_MS) {
        groups
          .get(group, 0)
          .catch((error) =>
            log.debug(
              { channel: 'whatsapp', group, reason: describe(error) },
              'WhatsApp could not be asked about a group',
            ),
          );
      }
      return null;
    },

    metadata: (group) => groups.get(group, KEPT_MS),

    isAdministrator: (group, sender) =>
      isAdministrator(groups, group, (metadata) => isAdministratorOf(metadata, sender)),

    manages(group, { phone, lid }) {
      const metadata = groups.known(group, Number.POSITIVE_INFINITY);
      return (
        metadata !== undefined && [phone, lid].some((jid) => jid !== null && isAdministratorOf(metadata, jid))
      );
    },

    changed(changes) {
      for (const { id, subject } of changes) {
        if (!id) continue;
        if (subject) titles.set(id, subject);
        groups.forget(id);
      }
    },

    membersChanged: groups.forget,
    wasAway: groups.forgetAll,
  };
}

function isAdministratorOf({ participants }: GroupMetadata, sender: string): boolean {
  return participants.some(
    ({ id, phoneNumber, lid, admin }) =>
      (admin === 'admin' || admin === 'superadmin') && isSamePerson(personOf(id, phoneNumber, lid), sender),
  );
}
