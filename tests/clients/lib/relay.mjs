// A relay in front of the server, as a network or a proxy that dies without a word.

import net from 'node:net';
import { once } from 'node:events';
import { serverUrl } from './server.mjs';

const BAD_GATEWAY = 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/**
 * A relay to the server whose connections can be frozen (both sides stay open and learn nothing), or cut, and new ones answered as by a proxy
 * whose server is away, until they are let pass again.
 */
export async function relayed() {
  const { hostname, port } = new URL(serverUrl);
  const connections = [];
  let isAway = false;
  const relay = net.createServer((client) => {
    if (isAway) {
      client.on('error', () => {});
      client.once('data', () => client.end(BAD_GATEWAY));
      return;
    }
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
  const cut = () => {
    for (const socket of connections.flat()) socket.destroy();
  };
  const leave = () => {
    isAway = true;
    cut();
  };
  const comeBack = () => (isAway = false);
  const close = () => {
    relay.close();
    cut();
  };
  return { url: `http://127.0.0.1:${relay.address().port}`, connections, freeze, leave, comeBack, close };
}
