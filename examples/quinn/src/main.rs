//! Sends a file by quinn's own QUIC over a pool, from one socket of UDP to another:
//!
//!     cargo run --release -- [MEGABYTES]
//!
//! Where the data lie: the sender makes them in units of the pool and hands these to a stream as `Bytes`, without a copy. quinn
//! keeps each until its data were acknowledged, and encrypts from it into the datagram that is sent. The kernel writes
//! datagrams that come into units, several into one. quinn decrypts in place, in memory of its own, so that each
//! is copied once, as quinn does from its own buffers, too. At the end all units are back in the pool.

use std::error::Error;
use std::hash::{DefaultHasher, Hasher};
use std::io::{ErrorKind, IoSliceMut};
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    ReadError, ReadableError, ServerConfig, StreamId, WriteError,
};
use quinn_udp::{RecvMeta, UdpSocketState};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tripoint::packets::{PacketBox, PacketCache, PacketPool, PacketPoolOptions};
use tripoint::{ArenaVm, ArenaVmOptions};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The bytes of a unit: the kernel joins datagrams of one sender up to this.
const SIZE: usize = 1 << 16;

type Pool = PacketPool<ArenaVm, SIZE>;

/// Units that the kernel may write to by one call.
const BURST: usize = quinn_udp::BATCH_SIZE;

/// Time after which something has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// One end: a socket, and a connection of quinn.
struct Peer {
    socket: UdpSocket,
    state: UdpSocketState,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// What quinn builds datagrams in.
    built: Vec<u8>,
}

impl Peer {
    fn new(server: Option<ServerConfig>) -> Outcome<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let state = UdpSocketState::new((&socket).into())?;
        let endpoint = Endpoint::new(
            Arc::new(EndpointConfig::default()),
            server.map(Arc::new),
            !state.may_fragment(),
            None,
        );
        Ok(Self { socket, state, endpoint, connection: None, built: Vec::new() })
    }

    /// Hands the datagrams that have come to quinn, and sends what it has to send.
    fn turn(&mut self, cache: &mut PacketCache<'_, SIZE>) -> Outcome {
        let now = Instant::now();
        self.receive(cache, now)?;
        let Some((handle, connection)) = &mut self.connection else { return Ok(()) };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        self.built.clear();
        while let Some(transmit) =
            connection.poll_transmit(now, self.state.max_gso_segments(), &mut self.built)
        {
            send(&self.socket, &self.state, &transmit, &self.built)?;
            self.built.clear();
        }
        Ok(())
    }

    /// Receives into units of the pool.
    fn receive(&mut self, cache: &mut PacketCache<'_, SIZE>, now: Instant) -> Outcome {
        let mut packets: Vec<PacketBox<'_, SIZE>> = Vec::with_capacity(BURST);
        while packets.len() < BURST
            && let Some(mut packet) = cache.take()
        {
            packet.append(packet.tailroom())?;
            packets.push(packet);
        }
        let mut meta = [RecvMeta::default(); BURST];
        let mut buffers: Vec<_> = packets.iter_mut().map(|packet| IoSliceMut::new(packet)).collect();
        let received = match self.state.recv((&self.socket).into(), &mut buffers, &mut meta) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            received => received?,
        };
        for (packet, meta) in packets.iter().zip(&meta[..received]) {
            for datagram in packet[..meta.len].chunks(meta.stride) {
                self.handle(meta, datagram, now)?;
            }
        }
        packets.into_iter().for_each(|packet| cache.give(packet));
        Ok(())
    }

    fn handle(&mut self, meta: &RecvMeta, datagram: &[u8], now: Instant) -> Outcome {
        self.built.clear();
        let (data, ecn) = (
            BytesMut::from(datagram),
            meta.ecn.and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8)),
        );
        match self.endpoint.handle(now, meta.addr, meta.dst_ip, ecn, data, &mut self.built) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut self.built, None);
                self.connection = Some(accepted.map_err(|refused| refused.cause)?);
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                send(&self.socket, &self.state, &transmit, &self.built)?
            }
            None => {}
        }
        Ok(())
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }
}

/// Sends datagrams. If the kernel has no room for them they are lost, and quinn sends their data again.
fn send(
    socket: &UdpSocket,
    state: &UdpSocketState,
    transmit: &quinn_proto::Transmit,
    built: &[u8],
) -> Outcome {
    let transmit = quinn_udp::Transmit {
        destination: transmit.destination,
        ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
        contents: &built[..transmit.size],
        segment_size: transmit.segment_size,
        src_ip: transmit.src_ip,
    };
    match state.send(socket.into(), &transmit) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        sent => Ok(sent?),
    }
}

/// What is sent: bytes that differ, made in units of the pool.
struct Source {
    pool: Arc<Pool>,
    rest: u64,
    hash: DefaultHasher,
    /// What quinn had no room for.
    waiting: Option<Bytes>,
}

impl Source {
    /// The next data; none if they are over, or if quinn has all units.
    fn next(&mut self) -> Outcome<Option<Bytes>> {
        if self.waiting.is_some() {
            return Ok(self.waiting.take());
        }
        if self.rest == 0 {
            return Ok(None);
        }
        let Some(mut packet) = self.pool.take() else { return Ok(None) };
        let bytes = self.rest.min(packet.tailroom() as u64) as usize;
        for (place, byte) in packet.append(bytes)?.iter_mut().enumerate() {
            *byte = (self.rest as usize + place * 31) as u8;
        }
        self.hash.write(&packet);
        self.rest -= bytes as u64;
        Ok(packet.into_owned(&self.pool).ok().map(Bytes::from))
    }

    /// Hands data to a stream, as far as quinn has room, and ends it after the last.
    fn write(&mut self, connection: &mut Connection, stream: StreamId) -> Outcome<bool> {
        while let Some(mut bytes) = self.next()? {
            match connection.send_stream(stream).write_chunks(std::slice::from_mut(&mut bytes)) {
                Ok(_) | Err(WriteError::Blocked) => {}
                Err(error) => return Err(error.into()),
            }
            if !bytes.is_empty() {
                self.waiting = Some(bytes);
                return Ok(false);
            }
        }
        let is_over = self.rest == 0;
        if is_over {
            connection.send_stream(stream).finish()?;
        }
        Ok(is_over)
    }
}

/// Reads what has come of a stream. Returns whether that was all.
fn read(
    connection: &mut Connection,
    stream: StreamId,
    hash: &mut DefaultHasher,
    bytes: &mut u64,
) -> Outcome<bool> {
    let mut stream = connection.recv_stream(stream);
    let mut chunks = match stream.read(true) {
        Ok(chunks) => chunks,
        Err(ReadableError::ClosedStream) => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    let is_over = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                hash.write(&chunk.bytes);
                *bytes += chunk.bytes.len() as u64;
            }
            Ok(None) => break true,
            Err(ReadError::Blocked) => break false,
            Err(error) => return Err(error.into()),
        }
    };
    let _ = chunks.finalize();
    Ok(is_over)
}

/// Both ends, with a certificate that one has and the other trusts.
fn peers() -> Outcome<[Peer; 2]> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let receiver = Peer::new(Some(ServerConfig::with_single_cert(vec![cert.der().clone()], key.into())?))?;
    let (mut sender, mut roots) = (Peer::new(None)?, RootCertStore::empty());
    roots.add(cert.der().clone())?;
    let client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let address = receiver.socket.local_addr()?;
    sender.connection = Some(sender.endpoint.connect(Instant::now(), client, address, "localhost")?);
    Ok([sender, receiver])
}

fn main() -> Outcome {
    let megabytes = std::env::args().nth(1).map_or(Ok(100), |argument| argument.parse::<u64>())?;
    let arena = ArenaVm::create(ArenaVmOptions::default())?;
    let options =
        PacketPoolOptions { count: 256, caches: 1, cache_size: 2 * BURST as u32, ..Default::default() };
    let pool = Arc::new(Pool::create(arena, options)?);
    let [mut sender, mut receiver] = peers()?;
    let hash = DefaultHasher::new();
    let mut source = Source { pool: Arc::clone(&pool), rest: megabytes * 1_000_000, hash, waiting: None };
    let (mut hash, mut bytes, mut is_sent, mut is_read) = (DefaultHasher::new(), 0, false, false);
    let (mut outgoing, mut incoming, mut begin, mut most) = (None, None, Instant::now(), 0);
    let mut cache = pool.cache()?;
    while !is_read {
        if begin.elapsed() > PATIENCE {
            return Err(format!("nothing comes any more after {bytes} bytes").into());
        }
        sender.turn(&mut cache)?;
        if let Some(connection) = sender.connection() {
            while let Some(event) = connection.poll() {
                match event {
                    Event::Connected => outgoing = connection.streams().open(Dir::Uni),
                    Event::ConnectionLost { reason } => return Err(reason.into()),
                    _ => {}
                }
            }
            if let (Some(stream), false) = (outgoing, is_sent) {
                is_sent = source.write(connection, stream)?;
                most = most.max(pool.counts().boxed());
            }
        }
        receiver.turn(&mut cache)?;
        if let Some(connection) = receiver.connection() {
            while let Some(event) = connection.poll() {
                if let Event::ConnectionLost { reason } = event {
                    return Err(reason.into());
                }
            }
            incoming = incoming.or_else(|| connection.streams().accept(Dir::Uni));
            if let Some(stream) = incoming {
                let before = bytes;
                is_read = read(connection, stream, &mut hash, &mut bytes)?;
                if bytes > before {
                    begin = Instant::now();
                }
            }
        }
    }
    if hash.finish() != source.hash.finish() {
        return Err(format!("{bytes} bytes came, and are not those that were sent").into());
    }
    println!("{bytes} bytes have come, and are those that were sent; quinn had up to {most} units");

    drop((sender, receiver, cache, source));
    let counts = pool.counts();
    if counts.depot != counts.units {
        return Err(format!("units are missing: {counts:?}").into());
    }
    println!("all {} units are in the pool", counts.units);
    Ok(())
}
