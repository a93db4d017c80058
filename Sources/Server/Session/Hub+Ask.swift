import ThicketNet
import ThicketProtocol

/// A question of an administrator that awaits answers.
struct Ask {
    let id: AskID
    let bucket: BucketID
    let isIndex: Bool
    /// Nanoseconds.
    let deadline: Int64
    /// Bytes of answers that may still be passed on.
    var bytesLeft = Hub.answerBytesMax
}

// `index` and `log`: what the server may ask of clients (streaming API, "Server to Client Commands").
extension Hub {
    /// Questions that may await answers at once.
    public static let asksMax = 64
    /// Bytes of answers passed on for one question.
    public static let answerBytesMax = 64 << 20

    /// Asks all clients of a bucket. Answers come as `report` actions until the question's time is over, then
    /// `ended`. Some clients never answer, so the question does not end at a number of answers.
    public func ask(_ id: AskID, _ question: RemoteQuestion, now: HubInstant) {
        guard asks.count < Self.asksMax else {
            return actions.append(.report(id, .failed("too many questions at once; ask again later")))
        }
        let asked = put(question)
        actions.append(.report(id, .asked(asked)))
        guard asked > 0 else { return actions.append(.report(id, .ended)) }
        asks.append(
            Ask(
                id: id, bucket: question.bucket, isIndex: question.kind == .index,
                deadline: now.monotonic + Int64(question.seconds) * 1_000_000_000))
    }

    /// Sends an `index` question to each channel, a `log` question to each connection once.
    private func put(_ question: RemoteQuestion) -> Int {
        var asked = 0
        var connections = Set<ConnectionID>()
        for channel in feeds[question.bucket]?.subscribers ?? [] where channel.isReady {
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

    /// The asking administrator has disconnected.
    public func cancelAsk(_ id: AskID) { asks.removeAll { $0.id == id } }

    /// Whether a question for the state of the channel's client is open.
    func awaitsState(of channel: Channel) -> Bool {
        asks.contains { $0.isIndex && $0.bucket == channel.feed?.bucket }
    }

    /// A client sent its state.
    func report(_ state: IndexState, from channel: Channel) {
        guard !asks.isEmpty else { return }
        var writer = JSONWriter()
        state.write(to: &writer)
        for index in asks.indices where asks[index].isIndex && asks[index].bucket == channel.feed?.bucket {
            pass(writer.bytes, of: channel, to: index)
        }
        dropFull()
    }

    /// A client sent a log message; it is dropped unless a question asked for it.
    /// - Parameter argument: the bytes after `log:`; parsed only if a question asked for them.
    func report(_ argument: ArraySlice<UInt8>, from session: Session) {
        guard !asks.isEmpty else { return }
        var json: [UInt8]?
        for index in asks.indices where !asks[index].isIndex {
            let bucket = asks[index].bucket
            guard let channel = session.channels.first(where: { $0.isReady && $0.feed?.bucket == bucket })
            else { continue }
            let bytes = json ?? ClientMessage.log(reading: argument).serialized()
            json = bytes
            pass(bytes, of: channel, to: index)
        }
        dropFull()
    }

    private func pass(_ json: [UInt8], of channel: Channel, to index: Int) {
        asks[index].bytesLeft -= json.count
        guard asks[index].bytesLeft >= 0 else { return }
        actions.append(.report(asks[index].id, .answer(client: channel.clientID.text, json: json)))
    }

    /// Ends questions whose clients have sent too much.
    private func dropFull() {
        for ask in asks where ask.bytesLeft < 0 {
            actions.append(.report(ask.id, .failed("the clients sent more than is passed on")))
        }
        asks.removeAll { $0.bytesLeft < 0 }
    }

    func expireAsks(_ now: HubInstant) {
        guard !asks.isEmpty else { return }
        for ask in asks where ask.deadline <= now.monotonic { actions.append(.report(ask.id, .ended)) }
        asks.removeAll { $0.deadline <= now.monotonic }
    }
}
