import ThicketProtocol

/// Users whose tokens have ended lately. Bounded: by the time an entry is dropped, no token lookup from before it
/// is in progress any more, because each entry was written to disk first.
struct SignedOut {
    /// Users kept.
    static let namesMax = 1_024

    private var generations = [Tenant.Name: UInt64]()
    private var order = [Tenant.Name]()

    /// - Parameter generation: the newest generation; channels up to it began before.
    mutating func record(_ name: Tenant.Name, generation: UInt64) {
        if generations.updateValue(generation, forKey: name) == nil { order.append(name) }
        guard order.count > Self.namesMax else { return }
        generations[order.removeFirst()] = nil
    }

    /// Whether a channel's grant may have been looked up before the user's tokens ended.
    func mayBeOld(_ name: Tenant.Name, generation: UInt64) -> Bool {
        generations[name].map { generation <= $0 } ?? false
    }
}

// Tokens that end while connections are open.
extension Hub {
    /// The user's tokens, or some of them, have ended: every connection with a channel of the user is closed. A
    /// client with another good token reconnects with it.
    func signOut(_ name: Tenant.Name) {
        signedOut.record(name, generation: nextGeneration)
        for session in sessions {
            if let channel = session.channels.first(where: { isOf($0, name) }) { signOut(channel) }
        }
        emptyLeaving()
    }

    /// Ends the connection of a channel whose token is no longer good; a request gets its answer.
    func signOut(_ channel: Channel) {
        let session = channel.session
        if session.exchange != nil {
            return sendRefusal(channel.number, of: session, .signedOut, expectsExpired: false)
        }
        close(session, .policyViolation, "signed out")
    }

    private func isOf(_ channel: Channel, _ name: Tenant.Name) -> Bool {
        channel.user == name.user && channel.session.app == name.app
    }
}
