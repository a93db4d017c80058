import ThicketPlatform
import ThicketProtocol

/// Bounds and timeouts of a session, in nanoseconds.
struct SockJSRules: Sendable, Equatable {
    /// Silence towards a receiver after which it gets a heartbeat.
    var heartbeat: Int64 = 25_000_000_000
    /// How long a session without a receiver is kept, and how long a closed one still answers with its close frame.
    var patience: Int64 = 5_000_000_000
    /// Bytes of frames after which a streaming response ends, and of messages joined into one frame.
    var responseBytesMax = 128 << 10
    /// Bytes that wait for a receiver. The message that exceeds the bound is still queued, the next one closes the
    /// session.
    var queueBytesMax = 16 << 20
}

/// One SockJS session: the queue for its client and its current receiver. It has no sockets and no clock.
///
/// Several responses take turns as the receiver. Between two of them the session waits for `patience`. A receiver that
/// breaks off before its response is complete ends the session, because it is unknown what the client has received: the
/// client gets 1002 and starts a new session, asking `cv` (sockjs-protocol 0.3.3, "Handling close").
struct SockJSSession {
    enum Action: Equatable {
        /// For the receiver, wrapped as its transport requires.
        case write([UInt8])
        /// The receiver's response is complete.
        case finish
        /// The session has ended: no more input is accepted from the client. Occurs once.
        case ended
        /// The session can be forgotten. The last action.
        case forget
    }

    enum Admission: Equatable {
        case admitted
        /// The receiver gets this, wrapped, and its response is complete.
        case refused([UInt8])
    }

    private enum Phase {
        /// The open frame was not sent yet.
        case fresh
        case open
        /// Every receiver gets this frame.
        case closed([UInt8])
    }

    private let rules: SockJSRules
    private var phase = Phase.fresh
    private var receiver: SockJSReceiver?
    /// Bytes of frames in the receiver's response.
    private var sent = 0
    /// JSON strings, oldest first.
    private var queue = [[UInt8]]()
    /// Bytes that wait for a receiver.
    private(set) var queueBytes = 0
    /// When `tick` must be called next, in nanoseconds.
    private(set) var deadline: Int64

    init(rules: SockJSRules, now: Int64) {
        self.rules = rules
        deadline = now + rules.patience
    }

    /// Whether messages from and for the client are accepted.
    var isOpen: Bool {
        if case .closed = phase { return false }
        return true
    }

    /// Attaches a response or a socket that takes frames; `flush` then sends it what is queued.
    mutating func attach(_ receiver: SockJSReceiver, now: Int64) -> Admission {
        if case .closed(let frame) = phase { return .refused(receiver.wrap(frame)) }
        guard self.receiver == nil else { return .refused(receiver.wrap(SockJSFrame.busy)) }
        self.receiver = receiver
        sent = 0
        deadline = now + rules.heartbeat
        return .admitted
    }

    /// Queues a message for the client, as a JSON string.
    ///
    /// - Returns: false when too much is queued: the caller closes the session.
    mutating func enqueue(_ element: [UInt8]) -> Bool {
        guard isOpen else { return true }
        guard queueBytes <= rules.queueBytesMax else { return false }
        queue.append(element)
        queueBytes += element.count
        return true
    }

    /// Sends the queue to the receiver.
    mutating func flush(now: Int64) -> [Action] {
        var actions = [Action]()
        flush(into: &actions, now: now)
        return actions
    }

    private mutating func flush(into actions: inout [Action], now: Int64) {
        guard isOpen, receiver != nil else { return }
        if case .fresh = phase {
            phase = .open
            guard write(SockJSFrame.open, into: &actions, now: now) else { return }
        }
        while let batch = takeBatch() {
            guard write(batch, into: &actions, now: now) else { return }
        }
    }

    /// Handles the loss of the receiver's peer before the response was complete.
    mutating func vanished(now: Int64) -> [Action] {
        receiver = nil
        guard isOpen else { return [] }
        return end(with: SockJSFrame.interrupted, now: now)
    }

    /// Closes the session; queued messages are sent first if the receiver can take them.
    mutating func close(_ code: UInt16, _ reason: String, now: Int64) -> [Action] {
        guard isOpen else { return [] }
        var actions = [Action]()
        flush(into: &actions, now: now)
        let frame = SockJSFrame.close(code, reason)
        if let receiver { actions += [.write(receiver.wrap(frame)), .finish] }
        receiver = nil
        return actions + end(with: frame, now: now)
    }

    /// Does what is due: heartbeats, and the end of sessions without a receiver.
    mutating func tick(now: Int64) -> [Action] {
        guard now >= deadline else { return [] }
        if receiver != nil {
            var actions = [Action]()
            _ = write(SockJSFrame.heartbeat, into: &actions, now: now)
            return actions
        }
        guard isOpen else { return [.forget] }
        return end(with: SockJSFrame.interrupted, now: now) + [.forget]
    }

    // MARK: Actions

    /// - Returns: whether the receiver takes more.
    private mutating func write(_ frame: [UInt8], into actions: inout [Action], now: Int64) -> Bool {
        guard let receiver else { return false }
        let bytes = receiver.wrap(frame)
        sent += bytes.count
        actions.append(.write(bytes))
        let isFull =
            switch receiver.transport.role {
            case .poll: true
            case .stream: sent >= rules.responseBytesMax
            case .socket, .send: false
            }
        deadline = now + (isFull ? rules.patience : rules.heartbeat)
        guard isFull else { return true }
        actions.append(.finish)
        self.receiver = nil
        return false
    }

    /// The next frame of messages: as many as fit into a response, at least one.
    private mutating func takeBatch() -> [UInt8]? {
        guard !queue.isEmpty else { return nil }
        var count = 0
        var bytes = 0
        while count < queue.count, count == 0 || bytes + queue[count].count <= rules.responseBytesMax {
            bytes += queue[count].count
            count += 1
        }
        let frame = SockJSFrame.messages(queue[..<count])
        queueBytes -= bytes
        if count == queue.count { queue = [] } else { queue.removeFirst(count) }
        return frame
    }

    private mutating func end(with frame: [UInt8], now: Int64) -> [Action] {
        phase = .closed(frame)
        (queue, queueBytes) = ([], 0)
        deadline = now + rules.patience
        return [.ended]
    }
}
