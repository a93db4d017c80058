import ThicketProtocol
import ThicketScheduling
import ThicketTreeShape

/// The unparsed body of a request that changes something, with what else the request says about the change. Small
/// bodies are parsed on the loop, others on a reader's thread, because parsing a megabyte takes milliseconds.
public struct RESTBody: Sendable {
    /// The kind of body.
    enum Content: Sendable {
        /// One object.
        case object(key: EntityKey, ccid: String, version: Version?, ChangeTerms, wantsObject: Bool)
        /// Changes in the form that sockets send.
        case changes
        /// A batch of a tree.
        case batch
        /// A batch that was read, with copies whose signatures are to be verified.
        indirect case copies(CopyCheck)
        /// The policy of an inbox.
        case policy
    }

    /// The result of parsing the body.
    public enum Reading: Sendable {
        /// The operation that the body asks for.
        case operation(RESTCall.Operation)
        /// The body cannot be used.
        case refused(HTTPResponse)
    }

    let content: Content
    let bytes: [UInt8]
    /// The tenant of the request, set before a reader gets it: `Tenant.number`, 0 when unauthenticated.
    var tenant: TenantID = 0

    /// Bytes that it takes while it waits for a reader.
    var weight: Int { if case .copies(let check) = content { check.bytes } else { bytes.count } }
    /// Whether a reader's thread parses it.
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
        case .copies(let check): return .operation(.batch(check.checked()))
        case .policy:
            do throws(TreeCallFault) { return .operation(.setInboxPolicy(try InboxPolicy(parsing: bytes))) } catch {
                return .refused(
                    RESTAnswer.invalid(
                        "invalid_policy", "The body is not the policy of an inbox: \(error.description).",
                        "Send policy, contacts and blocked as PROTOCOL.md describes them."))
            }
        case .batch:
            do throws(BatchFault) { return .operation(.batch(try TreeBatchRequest(parsing: bytes))) } catch {
                return .refused(RESTAnswer.of(BatchRefusal(error)))
            }
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
                        "Send at most this many at once."))
            }
            return .refused(
                RESTAnswer.badJSON(JSONBodyProblem(error, in: bytes), wanted: "a change, or an array of changes,"))
        }
        return .operation(.submit(changes))
    }
}

// Large bodies, whose user is known by now, on their way to a reader's thread and back.
extension Hub {
    /// Hands a body to the readers, if the bounds allow for the changes it will become.
    func read(_ body: RESTBody, for channel: Channel) {
        guard bytesBeingRead + inFlight.bytes < limits.changeBytesQueuedMax else {
            metrics.limitHits.add(1, .queue)
            return answer(channel.session, RESTAnswer.busy("Too many changes are in progress."))
        }
        var body = body
        body.tenant = channel.session.tenant?.id ?? 0
        guard read(.body(body), for: channel) else { return }
        beginReading(body.weight, of: channel.session.tenant)
    }

    /// Continues a request whose body was parsed, as if the body had been small.
    func hasRead(_ reading: RESTBody.Reading, _ exchange: RESTExchange, on channel: Channel, now: HubInstant) {
        switch reading {
        case .refused(let response): answer(channel.session, response)
        case .operation(let operation):
            exchange.call.operation = operation
            run(exchange, on: channel, now: now)
        }
    }
}
