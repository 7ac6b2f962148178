// A relay in front of the server, as a network or a proxy that dies without a word.

import net from 'node:net';
import { once } from 'node:events';
import { serverUrl } from './server.mjs';

/** A relay to the server whose connections can be frozen: both sides stay open and learn nothing. */
export async function relayed() {
  const { hostname, port } = new URL(serverUrl);
  const connections = [];
  const relay = net.createServer((client) => {
    const server = net.connect(port, hostname);
    connections.push([client, server]);
    for (const socket of [client, server]) socket.on('error', () => {});
    client.pipe(server).pipe(client);
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  const freeze = () => {
    for (const [client, server] of connections) {
      client.unpipe(server);
      server.unpipe(client);
      client.resume();
      server.resume();
    }
  };
  const close = () => {
    relay.close();
    for (const socket of connections.flat()) socket.destroy();
  };
  return { url: `http://127.0.0.1:${relay.address().port}`, connections, freeze, close };
}
