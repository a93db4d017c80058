import ThicketClient
import ThicketCommandLine
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket whoami`: prints the user's name.
enum WhoamiCommand {
    static func run(_ call: Call) throws(Failure) {
        let account = try Account(call)
        let profile = account.profile
        if call.flag("json") {
            let object: JSONObject = [
                "user": profile.user.map(JSONValue.string) ?? .null, "server": .string(profile.server),
                "app": .string(profile.app), "login": .string(profile.kind.rawValue),
                "profile": account.folder == nil ? .null : .string(account.profileName),
            ]
            Terminal.write(JSONValue.object(object).serializedText + "\n")
            return
        }
        guard let user = profile.user else {
            throw Failure(
                "the token was given for this call alone; 'thicket status' asks the server for its user", .notFound)
        }
        Terminal.write(Screen.safe(user) + "\n")
    }
}

/// `thicket devices`: lists the devices on which the user is logged in.
enum DevicesCommand {
    static func run(_ call: Call) async throws(Failure) {
        let devices = try await AccountCall.run(call, "cannot list the devices") {
            session throws(ClientError) in try await session.devices()
        }
        for device in devices {
            if call.flag("json") {
                let object: JSONObject = [
                    "device": .string(device.id), "first_seen": .number(JSONNumber(device.firstSeen)),
                    "last_seen": device.lastSeen.map { .number(JSONNumber($0)) } ?? .null,
                    "this": .bool(device.isThisOne),
                ]
                Terminal.write(JSONValue.object(object).serializedText + "\n")
            } else {
                let last = device.lastSeen.map { "  seen \(Days.text($0))" } ?? ""
                Terminal.write(
                    "\(device.isThisOne ? "*" : " ") \(Screen.safe(device.id))  since \(Days.text(device.firstSeen))"
                        + "\(last)\n")
            }
        }
    }
}

/// `thicket token …`: the tokens of an account.
enum TokenCommand {
    static func list(_ call: Call) async throws(Failure) {
        let tokens = try await AccountCall.run(call, "cannot list the tokens") {
            session throws(ClientError) in try await session.tokens()
        }
        for token in tokens {
            if call.flag("json") {
                let object: JSONObject = [
                    "id": .string(token.id), "created": .number(JSONNumber(token.created)),
                    "expires": token.expires.map { .number(JSONNumber($0)) } ?? .null,
                    "device": .string(token.device), "this": .bool(token.isCurrent),
                ]
                Terminal.write(JSONValue.object(object).serializedText + "\n")
            } else {
                let end = token.expires.map { "until \(Days.text($0))" } ?? "until it is revoked"
                let device = token.device.isEmpty ? "" : "  \(Screen.safe(token.device))"
                Terminal.write(
                    "\(token.isCurrent ? "*" : " ") \(Screen.safe(token.id))  since \(Days.text(token.created))  \(end)"
                        + "\(device)\n")
            }
        }
    }

    static func revoke(_ call: Call) async throws(Failure) {
        let start = call.argument("ID")
        let id = try await AccountCall.run(call, "cannot revoke the token") { session throws(ClientError) in
            let found = try await session.tokens().filter { $0.id.utf8.starts(with: start.utf8) }
            guard let token = found.first, !start.isEmpty else {
                throw ClientError(.notFound, "no token has an id that begins with '\(start)'; see 'thicket token list'")
            }
            guard found.count == 1 else {
                throw ClientError(.invalidOptions, "\(found.count) tokens have ids that begin with '\(start)'")
            }
            guard !token.isCurrent else {
                throw ClientError(.invalidOptions, "that is the login used here: 'thicket logout' ends it")
            }
            try await session.revokeToken(token.id)
            return token.id
        }
        Terminal.write("revoked \(Screen.safe(id)): machines that use it are signed out\n")
    }

    /// Prints the token itself, after the server has confirmed that it is valid at this moment.
    static func show(_ call: Call) async throws(Failure) {
        let account = try Account(call)
        guard account.profile.kind == .partner else {
            Terminal.write(account.profile.token + "\n")
            return
        }
        let token = try await AccountCall.run(call, "cannot renew the token") { session throws(ClientError) in
            _ = try await session.devices()
            return await session.accessToken
        }
        Terminal.write(token + "\n")
    }
}

/// Calls the server with the stored login.
enum AccountCall {
    static func run<Value: Sendable>(
        _ call: Call, _ what: String, _ body: (ClientSession) async throws(ClientError) -> Value
    ) async throws(Failure) -> Value {
        let account = try Account(call)
        guard account.profile.kind != .token else {
            try account.expectProfile(what)
            throw Failure(
                "\(what): this login is a token that an operator made, not an account. 'thicketd token list' shows such "
                    + "tokens.", .usage)
        }
        do throws(ClientError) {
            return try await with(account, body)
        } catch {
            guard error.code == .unauthorized, error.number == 401 else { throw Failure(what, error) }
            throw Failure("\(what): the login has ended. \(account.profile.renewal)", .unauthorized)
        }
    }
}

/// Points in time for a person, in the machine's time zone.
enum Days {
    static func text(_ seconds: Int64) -> String {
        var (time, parts) = (time_t(seconds), tm())
        guard localtime_r(&time, &parts) != nil else { return "?" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min))"
    }
}
