import ThicketProtocol

/// A question of an administrator that waits for answers.
struct Ask {
    let id: AskID
    let bucket: BucketID
    let isIndex: Bool
    /// Nanoseconds.
    let deadline: Int64
}

// `index` and `log`: what the server may ask of clients (streaming API, "Server to Client Commands").
extension Hub {
    /// Questions that wait for answers at once.
    public static let asksMax: Int = 64

    /// Asks all clients of a bucket. Answers come as `tell` actions until the question's time is over, then `ended`.
    /// Some clients never answer, so nobody waits for a number of answers.
    public func ask(_ id: AskID, _ question: RemoteQuestion, now: HubInstant) {
        guard asks.count < Self.asksMax else {
            return actions.append(.tell(id, .failed("too many questions at once; ask again later")))
        }
        let asked: Int = put(question)
        actions.append(.tell(id, .asked(asked)))
        guard asked > 0 else { return actions.append(.tell(id, .ended)) }
        asks.append(
            Ask(
                id: id, bucket: question.bucket, isIndex: question.kind == .index,
                deadline: now.monotonic + Int64(question.seconds) * 1_000_000_000))
    }

    /// Sends the question to each channel, or to each connection once.
    private func put(_ question: RemoteQuestion) -> Int {
        var asked: Int = 0
        var connections: Set<ConnectionID> = []
        for channel: Channel in feeds[question.bucket]?.subscribers ?? [] {
            switch question.kind {
            case .index: send(Reply.indexRequest(channel.number), to: channel.session)
            case .log(let level):
                guard connections.insert(channel.session.id).inserted else { continue }
                send(Reply.logRequest(level), to: channel.session)
            }
            asked += 1
        }
        return asked
    }

    /// The asker is gone.
    public func cancelAsk(_ id: AskID) { asks.removeAll { $0.id == id } }

    /// A client sent its state.
    func report(_ state: IndexState, from channel: Channel) {
        for ask: Ask in asks where ask.isIndex && ask.bucket == channel.feed?.bucket {
            var writer: JSONWriter = .init()
            state.write(to: &writer)
            actions.append(.tell(ask.id, .answer(client: channel.clientID.text, json: writer.bytes)))
        }
    }

    /// A client sent a log message; nobody keeps what was not asked for.
    func report(_ json: JSONValue, from session: Session) {
        for ask: Ask in asks where !ask.isIndex {
            guard let channel: Channel = session.channels.first(where: { $0.feed?.bucket == ask.bucket }) else {
                continue
            }
            actions.append(.tell(ask.id, .answer(client: channel.clientID.text, json: json.serialized())))
        }
    }

    func expireAsks(_ now: HubInstant) {
        guard !asks.isEmpty else { return }
        for ask: Ask in asks where ask.deadline <= now.monotonic { actions.append(.tell(ask.id, .ended)) }
        asks.removeAll { $0.deadline <= now.monotonic }
    }
}
