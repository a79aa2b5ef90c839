/** Outgoing connections without a proxy. */
import { createOutward } from '../../src/network/outward.js';

export const straight = createOutward({ plain: null, secure: null, except: [], exceptFrom: '' });
