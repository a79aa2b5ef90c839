/** SQLite keeps the store's contract. */

import { storeContract } from '../contract/store.js';
import { openHere } from './place.js';

storeContract('the store on SQLite', async () => {
  const place = await openHere();
  return { store: await place.open(), another: () => place.open(), remove: place.remove };
});
