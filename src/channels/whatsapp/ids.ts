/** What a WhatsApp id tells by its form. Pure. */
import type { IdForms } from '../kit/descriptor.js';
import { isGroup, plainJid } from './jid.js';

/** A group is `1203…@g.us`, an older one `<phone>-<time>@g.us`. */
const GROUP = /^\d{5,25}(-\d{5,15})?@g\.us$/;
/** A phone number has at most 15 digits (ITU-T E.164); the other numbers are not longer. */
const PERSON = /^\d{3,20}@(s\.whatsapp\.net|lid)$/;

/** From `src/WABinary/jid-utils.ts` of Baileys, which knows people by phone number or by `@lid`, and groups. */
export const whatsappIds: IdForms = {
  expected: 'whatsapp_491701234567@s.whatsapp.net (or …@lid) for a person, whatsapp_1203…@g.us for a group',
  kindOf(address) {
    // Only as the channel itself writes it: under another form nobody would be found.
    if (plainJid(address) !== address) return null;
    if (isGroup(address)) return GROUP.test(address) ? 'group' : null;
    return PERSON.test(address) ? 'sender' : null;
  },
};
