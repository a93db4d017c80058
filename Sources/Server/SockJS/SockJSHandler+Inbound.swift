import ThicketProtocol

// Messages from clients: passed on a few per turn, and held back while the hub accepts no more.
extension SockJSHandler {
    /// Accepts the messages of one payload.
    func receive(_ messages: [[UInt8]], _ entry: Entry) {
        entry.inbound.append(contentsOf: messages)
        pump(entry)
    }

    /// Passes on the messages that may be passed on now; the rest follows in later turns.
    private func pump(_ entry: Entry) {
        var left = Self.messagesPerTurn
        while entry.inboundStart < entry.inbound.count, !entry.isPaused, entry.session.isOpen {
            guard left > 0 else { return pumpLater(entry) }
            left -= 1
            let message = entry.inbound[entry.inboundStart]
            entry.inboundStart += 1
            host.sessionReceived(entry.id, message)
        }
        guard entry.inboundStart == entry.inbound.count, !entry.isPaused else { return }
        (entry.inbound, entry.inboundStart) = ([], 0)
        if let held = entry.held {
            entry.held = nil
            loop.respond(held.connection, held.answer)
        }
        if entry.transport == .websocket, let socket = entry.socket { loop.resumeReading(socket) }
    }

    /// Continues in the next turn.
    func pumpLater(_ entry: Entry) {
        guard !entry.isPumping else { return }
        entry.isPumping = true
        pumping.append(entry)
        guard pumping.count == 1 else { return }
        loop.schedule(after: .zero) { [unowned self] in
            let batch = pumping
            pumping = []
            for entry in batch {
                entry.isPumping = false
                if !entry.isForgotten { pump(entry) }
            }
        }
    }

    /// Drops the messages of a session that is over.
    func dropInbound(_ entry: Entry) {
        (entry.inbound, entry.inboundStart) = ([], 0)
        guard let held = entry.held else { return }
        entry.held = nil
        loop.respond(held.connection, HTTPResponse(status: 404, fields: held.answer.fields))
    }
}
