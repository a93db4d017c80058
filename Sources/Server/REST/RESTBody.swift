import ThicketProtocol

/// The body of a request that changes something, not looked at yet, with what else the request says of the change.
/// Small ones are read where they come in, others on a reader's thread: to read a megabyte takes milliseconds.
public struct RESTBody: Sendable {
    /// What the body is.
    enum Content: Sendable {
        /// One object.
        case object(key: EntityKey, ccid: String, version: Version?, ChangeTerms, wantsObject: Bool)
        /// Changes as sockets send them.
        case changes
    }

    /// What stood in it.
    public enum Reading: Sendable {
        case operation(RESTCall.Operation)
        /// It cannot be used.
        case refused(HTTPResponse)
    }

    let content: Content
    let bytes: [UInt8]
    /// Whose it is, once it goes to a reader: `Tenant.number`, 0 for a stranger.
    var tenant: UInt32 = 0

    /// Whether it is read elsewhere.
    var isLarge: Bool { bytes.count >= Hub.largeFrom }

    func read() -> Reading {
        switch content {
        case .object(let key, let ccid, let version, let terms, let wantsObject):
            let body: JSONNode
            do throws(JSONBodyProblem) { body = try JSONDocument.object(in: bytes) } catch {
                return .refused(RESTAnswer.badJSON(error, wanted: "one object"))
            }
            return .operation(
                .write(
                    ChangeRequest(key: key.text, ccid: ccid, operation: .modify, sv: version, object: .node(body)),
                    terms,
                    wantsObject: wantsObject))
        case .changes: return changes()
        }
    }

    private func changes() -> Reading {
        let changes: [ChangeRequest]
        do throws(JSONError) {
            let root = try JSONDocument(parsing: bytes[...], elementsMax: Limits.changesPerMessageMax).root
            changes = root.kind == .array ? root.elements.map { ChangeRequest($0) } : [ChangeRequest(root)]
        } catch {
            guard error.kind != .tooManyElements else {
                return .refused(
                    RESTAnswer.invalid(
                        "invalid_json", "The body has more than \(Limits.changesPerMessageMax) changes.",
                        "Send at most so many at once."))
            }
            return .refused(
                RESTAnswer.badJSON(JSONBodyProblem(error, in: bytes), wanted: "a change, or an array of changes,"))
        }
        return .operation(.submit(changes))
    }
}

// Large bodies, whose user is known by now, on their way to a reader's thread and back.
extension Hub {
    /// Hands a body to the readers, if there is room for what it will become.
    func read(_ body: RESTBody, for channel: Channel) {
        guard bytesBeingRead + inFlight.bytes < limits.changeBytesQueuedMax else {
            metrics.limitHits.add(1, .queue)
            return answer(channel.session, RESTAnswer.busy("Too many changes are under way."))
        }
        var body = body
        body.tenant = channel.session.tenant?.number ?? 0
        guard read(.body(body), for: channel) else { return }
        beginReading(body.bytes.count, of: channel.session.tenant)
    }

    /// A body has been read: its request goes on as if it had been small.
    func hasRead(_ reading: RESTBody.Reading, _ exchange: RESTExchange, on channel: Channel, now: HubInstant) {
        switch reading {
        case .refused(let response): answer(channel.session, response)
        case .operation(let operation):
            exchange.call.operation = operation
            run(exchange, on: channel, now: now)
        }
    }
}
