import ThicketClient
import ThicketCommandLine

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket logout`: removes an account and its copies from this machine.
enum LogoutCommand {
    static func run(_ call: Call) async throws(Failure) {
        let name = try Account.profileName(call)
        let home = try ProfileHome(call.environment)
        let old: Profile?
        do throws(Failure) { old = try home.read(name) } catch {
            guard call.flag("discard") else { throw error }
            old = nil
        }
        guard access(home.folder(name), F_OK) == 0 else {
            throw Failure("there is no profile '\(name)'; 'thicket status' lists them", .notFound)
        }
        if let old, !call.flag("discard") {
            let unsent = try await unsent(old, name, home, call)
            guard unsent.isEmpty else {
                let isTree = unsent.contains { same($0, TreeCopy.name) }
                let way = isTree ? "'thicket ls BUCKET' and 'thicket tree pull' send" : "'thicket ls BUCKET' sends"
                throw Failure(
                    "edits were never sent (in \(unsent.joined(separator: ", "))). \(way) them; "
                        + "--discard gives them up.")
            }
        }
        let rest: String
        if let old { rest = try await end(old, call) } else { rest = "" }
        try home.remove(name)
        Terminal.write("logged out of the profile '\(name)'.\(rest)\n")
    }

    /// Ends the login at the server and returns the text about the outcome.
    private static func end(_ profile: Profile, _ call: Call) async throws(Failure) -> String {
        guard profile.kind != .token else { return " The token itself stays good: an operator made it and can end it." }
        let account = try Account(call, trying: profile)
        let session = try await trying("cannot sign out") { () throws(ClientError) in
            try await account.session(store: .memory, isOnline: false)
        }
        let isAcknowledged = await session.signOut()
        await session.close()
        return isAcknowledged ? "" : " The server was not reached: the login stays good there until its own end."
    }

    /// Buckets whose copy holds edits that the server has not acknowledged, and the tree if its copy does.
    static func unsent(
        _ profile: Profile, _ name: String, _ home: ProfileHome, _ call: Call
    ) async throws(Failure) -> [String] {
        var found = [String]()
        for bucket in home.buckets(name) {
            let account = try Account(call, trying: profile, copiesOf: home)
            if try await OpenBucket.count(account, bucket: bucket).unsent > 0 { found.append(bucket) }
        }
        let account = try Account(call, trying: profile, copiesOf: home)
        if let waiting = try TreeCopy.waiting(account), waiting.count > 0 { found.append(TreeCopy.name) }
        return found
    }
}
