import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Waiting until the server has put messages into the inboxes of their receivers.
extension OpenTree {
    /// Waits until all receivers have a message, and prints it. What the server refuses for good is given up: no
    /// receiver has it then.
    ///
    /// - Parameter isDraft: the node was made for this message, and goes with it.
    func deliver(
        _ sent: TreeMessages.Sent, to receivers: Receivers, isDraft: Bool, _ call: Call
    ) async throws(Failure) {
        try await deliver(sent, to: receivers, isDraft: isDraft)
        try await report(sent, receivers, call)
    }

    /// The same, without printing it.
    func deliver(_ sent: TreeMessages.Sent, to receivers: Receivers, isDraft: Bool) async throws(Failure) {
        let bar = TransferBar("sending", bytes: 0, files: 1)
        let follower = Terminal.isTerminal(Terminal.standardError) ? bar.following(uploadsOf: tree) : nil
        defer {
            follower?.cancel()
            bar.clear()
        }
        let messages = tree.messages
        let problem: TreeError? = try await waiting(.kept("send to \(receivers.names)")) { () throws(TreeError) in
            do throws(TreeError) {
                try await messages.wait(for: sent, timeout: .seconds(Self.longestWaitSeconds))
                return nil
            } catch {
                switch error.code {
                case .refused, .keys, .content, .limit: return error
                default: throw error
                }
            }
        }
        if let problem { throw await giveUp(sent, receivers, problem, isDraft: isDraft) }
    }

    private func report(_ sent: TreeMessages.Sent, _ receivers: Receivers, _ call: Call) async throws(Failure) {
        let tree = tree
        let path = try await growing("cannot read the tree") { () throws(TreeError) in
            try await tree.path(of: sent.node)
        }
        guard call.flag("json") else {
            let place = path.map { " (\(TreeText.shown($0)))" } ?? ""
            return try LineOutput.write("sent to \(receivers.names): \(sent.node.text)\(place)\n")
        }
        var object: JSONObject = ["message": .string(sent.node.text)]
        if let path { object["path"] = .string(path.description) }
        object["receivers"] = .array(
            receivers.all.map { .object(["user": .string($0.user.text), "name": .string($0.text)]) })
        try LineOutput.write(JSONValue.object(object).serializedText + "\n")
    }

    private func giveUp(
        _ sent: TreeMessages.Sent, _ receivers: Receivers, _ error: TreeError, isDraft: Bool
    ) async -> Failure {
        let refused = (try? await tree.operations(of: sent.node))?.first {
            sent.operations.contains($0.id) && $0.needsApp
        }
        let name = refused.flatMap { operation in
            if case .copy(let user) = operation.kind { receivers.all.first { $0.user == user }?.text } else { nil }
        }
        // All at once: without the refused receiver the others would get it.
        do throws(TreeError) { try await tree.messages.discard(sent) } catch {
            return Failure("the message waits here: 'thicket tree queue' shows it", tree: error)
        }
        if isDraft, let removal = try? await tree.delete(sent.node) {
            // Without success it is sent with the next command.
            try? await confirm([removal], "remove the draft")
        }
        let who = name.map { Screen.safe($0) } ?? receivers.names
        let text = error.reason.flatMap { Self.reason($0, who) } ?? error.detail
        return Failure("nothing was sent: \(text)", Failure.code(error))
    }

    /// What happened and what can be done, for the server's word.
    private static func reason(_ word: String, _ receiver: String) -> String? {
        switch word {
        case "blocked":
            "\(receiver) does not accept messages of this account, or does not exist any more; the server does not say "
                + "which. Ask that person on another way (blocked)"
        case "inbox-full":
            "the inbox of \(receiver) is full; that person has to read and move messages first (inbox-full)"
        case "repeated":
            "\(receiver) has had this node already. A node goes to an account once: put a copy, and send that (repeated)"
        case "signature":
            "the server has other keys of this account than this machine could read: 'thicket login' gets them (signature)"
        case "needs-confirmation":
            "\(receiver) has new keys that the old ones have not signed. 'thicket verify \(receiver)' shows the number to "
                + "compare with that person"
        case "alarm": "the log of keys contradicts itself; 'thicket keylog' says what was found"
        default: nil
        }
    }

    /// Waits until the server has removed a message at its receiver.
    ///
    /// - Returns: false when it is not there.
    func burned(_ id: OperationID, _ what: String) async throws(Failure) -> Bool {
        let tree = tree
        return try await waiting(.kept(what)) { () throws(TreeError) in
            while true {
                do throws(TreeError) {
                    try await tree.wait(for: id, timeout: .seconds(1))
                    return true
                } catch {
                    guard error.code == .deadline || error.code == .refused else { throw error }
                }
                guard let operation = try await tree.queue.first(where: { $0.id == id }) else { return true }
                // The server does not say why a message is not there; it is not tried again.
                let isMissing = operation.trouble?.contains("node-missing") == true || operation.needsApp
                guard isMissing else { continue }
                do throws(TreeError) {
                    try await tree.discard(id)
                    return false
                } catch { if error.code != .limit { throw error } }
            }
        }
    }
}
