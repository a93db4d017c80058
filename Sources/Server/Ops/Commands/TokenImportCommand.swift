import Glibc
import ThicketCommandLine
import ThicketProtocol

/// `thicketd token import`: imports existing tokens, all lines or none.
enum TokenImportCommand {
    /// Largest file, bytes.
    static let fileBytesMax = 256 << 20
    /// Shorter tokens could be guessed.
    static let tokenBytesMin = 8
    /// Rejected lines that are listed; further ones are only counted.
    static let problemsShown = 20

    static func run(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let path = call.argument("FILE") ?? ""
        guard let bytes = FileText.readBytes(path, bytesMax: fileBytesMax) else {
            throw CommandFailure("\(path) cannot be read: \(DataFolder.reason(errno))")
        }
        let folder = try AdminCommands.folderWithData(config)
        let admin = try AdminCommands.admin(folder)
        let (tokens, lines) = try read(bytes, path, apps: try knownApps(admin))
        do throws(StoreAdminError) {
            let added = try admin.importTokens(tokens, now: UnixTime.now().milliseconds)
            let same = added < tokens.count ? ", \(tokens.count - added) existed already" : ""
            Terminal.write("imported \(added) tokens\(same)\n")
        } catch {
            switch error {
            case .tokenTaken(let place), .badToken(let place):
                throw CommandFailure("\(path):\(lines[place]): \(reason(error))\nNothing was imported.")
            case .unknownApp, .unknownPartner, .appTaken, .unknownKey, .bucketsInUse, .options, .treeMode, .store:
                throw CommandFailure("\(AdminCommands.explained(error, admin))\nNothing was imported.")
            }
        }
    }

    private static func reason(_ error: StoreAdminError) -> String {
        if case .tokenTaken = error { return "this token is in use for another app, user or right" }
        return "the token is empty or longer than \(StoreAdmin.tokenBytesMax) bytes"
    }

    private static func knownApps(_ admin: StoreAdmin) throws(CommandFailure) -> Set<AppID> {
        do throws(StoreAdminError) {
            return Set(try admin.apps())
        } catch {
            throw CommandFailure(error.description)
        }
    }

    /// Parses all lines; throws with a list of those that cannot be imported.
    /// - Returns: the tokens, and the line number of each.
    static func read(
        _ bytes: [UInt8], _ path: String, apps: Set<AppID>
    ) throws(CommandFailure) -> ([ImportedToken], [Int]) {
        var tokens = [ImportedToken]()
        var lines = [Int]()
        var problems = [String]()
        var number = 0
        for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
            number += 1
            let text = line.last == 0x0D ? line.dropLast() : line
            if text.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { continue }
            do throws(ValueError) {
                tokens.append(try token(Array(text), apps))
                lines.append(number)
            } catch {
                problems.append("\(path):\(number): \(error.problem)")
            }
        }
        guard problems.isEmpty else {
            let rest = problems.count - problemsShown
            let more = rest > 0 ? "\nand \(rest) more lines" : ""
            throw CommandFailure(
                problems.prefix(problemsShown).joined(separator: "\n") + more + "\nNothing was imported.")
        }
        return (tokens, lines)
    }

    private static func token(_ line: [UInt8], _ apps: Set<AppID>) throws(ValueError) -> ImportedToken {
        let json: JSONValue
        do {
            json = try JSONValue(parsing: line)
        } catch {
            throw ValueError("this is not JSON (byte \(error.offset))")
        }
        guard let object = json.objectValue else { throw ValueError("this is not a JSON object") }
        let names = ["app", "user", "token", "read_only"]
        for key in object.keys where !names.contains(where: { $0.utf8.elementsEqual(key.utf8) }) {
            let hint = Suggestion.nearest(to: key, in: names).map { "; did you mean \"\($0)\"?" } ?? ""
            throw ValueError("\"\(SettingValue.shown(key))\" is not known\(hint)")
        }
        let app = try text("app", object)
        let user = try text("user", object)
        let token = try text("token", object)
        let isReadOnly = try flag("read_only", object)
        guard token.utf8.count >= tokenBytesMin else {
            throw ValueError("the token is shorter than \(tokenBytesMin) bytes: it could be guessed")
        }
        guard token.utf8.count <= Hub.tokenBytesMax else {
            throw ValueError("the token is longer than \(Hub.tokenBytesMax) bytes")
        }
        guard token.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw ValueError("the token holds a space or control character, which the server never accepts")
        }
        let grant: TokenGrant
        do throws(IdentifierError) {
            grant = TokenGrant(app: try AppID(app), user: try UserID(user), isReadOnly: isReadOnly)
        } catch {
            throw ValueError(error.description)
        }
        guard apps.contains(grant.app) else {
            throw ValueError("there is no app \(grant.app); 'thicketd app create \(grant.app)' makes it")
        }
        return ImportedToken(grant: grant, token: token)
    }

    private static func text(_ name: String, _ object: JSONObject) throws(ValueError) -> String {
        guard let value = object[name] else { throw ValueError("\"\(name)\" is missing") }
        guard let text = value.stringValue else { throw ValueError("\"\(name)\" is not a string") }
        return text
    }

    private static func flag(_ name: String, _ object: JSONObject) throws(ValueError) -> Bool {
        guard let value = object[name] else { return false }
        guard let flag = value.boolValue else { throw ValueError("\"\(name)\" is neither true nor false") }
        return flag
    }
}
