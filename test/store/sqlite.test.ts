/** SQLite keeps the store's contract. */

import { storeContract } from '../contract/store.js';
import { openMade } from './place.js';

storeContract('the store on SQLite', async () => {
  const place = await openMade();
  return { store: await place.open(), another: () => place.open(), remove: place.remove };
});
