import ThicketProtocol

/// Any message from a client is read, or has no channel; a message that is read survives a round trip.
public func fuzzWireClient(_ bytes: [UInt8]) {
    guard let message: ClientMessage = try? .init(parsing: bytes) else { return }
    if case .channel(let channel, let request) = message {
        precondition(channel <= Limits.channelNumberMax, "channel numbers are bounded")
        switch request {
        case .change(let change): check(change)
        case .changes(let changes): changes.forEach(check)
        case .index(let index):
            precondition((1...Limits.indexPageMax).contains(index.pageLimit), "pages are bounded")
        case .initialize(let request):
            if case .initialize? = request.firstRequest { preconditionFailure("an init holds no init") }
        case .entity(_, let version): precondition(version >= 0, "versions count up from 0")
        default: break
        }
        guard isFaithful(request) else { return }
    }
    let written = message.encoded()
    precondition((try? ClientMessage(parsing: written)) == message, "what was written reads back equal")
}

/// False for a request that does not preserve its malformed parts: no client writes it.
private func isFaithful(_ request: ChannelRequest) -> Bool {
    switch request {
    case .change(let change): change.problems.isEmpty
    case .changes(let changes): changes.allSatisfy(\.problems.isEmpty)
    case .initialize(let request): request.isReadable
    case .unknown: false
    default: true
    }
}

private func check(_ change: ChangeRequest) {
    precondition(change.sv.map { $0 >= 0 } ?? true, "versions count up from 0")
    precondition(change.problems.count <= 4, "problems are few")
    guard let diff = change.diff, let read = try? ObjectDiff(diff) else { return }
    precondition((try? ObjectDiff(read.json)) == read, "a diff reads back equal")
}

/// Any message from a server is read or refused; a message that is read survives a round trip.
public func fuzzWireServer(_ bytes: [UInt8]) {
    guard let message: ServerMessage = try? .init(parsing: bytes) else { return }
    if case .channel(_, let reply) = message {
        switch reply {
        case .unknown: return
        // A name that a client could mistake is written in another form.
        case .authorized(let user) where !ServerReply.spokenName(of: user).utf8.elementsEqual(user.utf8): return
        default: break
        }
    }
    let written = message.encoded()
    precondition((try? ServerMessage(parsing: written)) == message, "what was written reads back equal")
}
