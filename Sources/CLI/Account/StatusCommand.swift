import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket status`: the login, whether the server answers, and the edits that were not sent yet.
enum StatusCommand {
    private struct Copy {
        let name: String
        /// nil: another command is using the copy.
        let objects: Int?
        let unsent: Int
        let refused: [RefusedEdit]
    }

    /// The copy of the tree.
    private struct TreeLine {
        let text: String
        /// nil without a copy.
        let json: JSONValue?

        init(_ account: Account) throws(Failure) {
            do throws(Failure) {
                let waiting = try TreeCopy.waiting(account)
                let unsent = waiting?.count ?? 0
                let advice =
                    unsent > 0 ? ", \(unsent) not sent: 'thicket tree pull' sends, 'thicket tree queue' lists" : ""
                text = waiting == nil ? "" : "tree     a copy is here\(advice)\n"
                json = waiting.map {
                    ["unsent": .number(JSONNumber(Int64($0.count))), "held": .number(JSONNumber(Int64($0.held)))]
                }
            } catch {
                guard error.code == .storeInUse else { throw error }
                (text, json) = ("tree     used by another command\n", .null)
            }
        }
    }

    static func run(_ call: Call) async throws(Failure) {
        let account: Account
        do throws(Failure) { account = try Account(call) } catch {
            listProfiles(call)
            throw error
        }
        let copies = try await copies(account)
        let tree = try TreeLine(account)
        let (found, problem) = await check(account)
        // The user of a login that has ended is still known.
        let user = found ?? account.profile.user
        if call.flag("json") {
            var object = json(account, copies, user, problem)
            object["tree"] = tree.json
            Terminal.write(JSONValue.object(object).serializedText + "\n")
        } else {
            Terminal.write(text(account, copies, user, problem) + tree.text)
        }
        remind(account)
        // The output already contains the problem.
        if let problem { throw Failure("", problem.code) }
    }

    /// Reminds of a missing backup, or of unusable keys on this machine, before the day they are needed.
    private static func remind(_ account: Account) {
        do throws(Failure) {
            guard let keys = try account.home?.readKeys(account.profileName) else { return }
            let open = try blockingKeys(keys)
            KeyCall.remind(open)
        } catch {
            Terminal.writeError("warning: \(error.text)\n")
        }
    }

    private static func blockingKeys(_ keys: DeviceKeys) throws(Failure) -> OpenAccount {
        do throws(AccountError) { return try keys.open() } catch {
            throw Failure("the keys kept here cannot be used", keys: error)
        }
    }

    private static func listProfiles(_ call: Call) {
        guard let names = try? ProfileHome(call.environment).names(), !names.isEmpty else { return }
        Terminal.writeError("profiles: \(names.joined(separator: ", ")) (choose with --profile)\n")
    }

    private static func copies(_ account: Account) async throws(Failure) -> [Copy] {
        guard let folder = account.folder else { return [] }
        var copies = [Copy]()
        for file in Files.names(in: folder + "/objects").sorted() where file.hasSuffix(".db") {
            let name = String(file.dropLast(3))
            do throws(Failure) {
                let count = try await OpenBucket.count(account, bucket: name)
                copies.append(
                    Copy(name: name, objects: count.objects, unsent: count.unsent, refused: count.refused))
            } catch {
                guard error.code == .storeInUse else { throw error }
                copies.append(Copy(name: name, objects: nil, unsent: 0, refused: []))
            }
        }
        return copies
    }

    private static func check(_ account: Account) async -> (String?, Failure?) {
        do throws(Failure) {
            let open = try await OpenBucket.open(account, bucket: LoginCommand.bucket, store: .memory)
            do throws(Failure) { try await open.ready("the token was not tried") } catch {
                await open.close()
                throw error
            }
            let user = try? await open.session.user
            await open.close()
            return (user, nil)
        } catch {
            return (nil, error)
        }
    }

    private static func word(_ problem: Failure?) -> String {
        switch problem?.code {
        case nil: "online"
        case .unauthorized?: "token not accepted"
        default: "cannot be reached"
        }
    }

    private static func text(_ account: Account, _ copies: [Copy], _ user: String?, _ problem: Failure?) -> String {
        var text = "profile  \(account.folder == nil ? "none: settings of this call" : account.profileName)\n"
        text += "server   \(account.profile.server): \(word(problem))\n"
        text += "app      \(account.profile.app)\n"
        if let user { text += "user     \(Screen.safe(user))\n" }
        let unsent = copies.reduce(0) { $0 + $1.unsent - $1.refused.count }
        if copies.isEmpty { text += "buckets  none used on this machine yet\n" }
        for copy in copies {
            let objects = copy.objects.map { "\($0) object\($0 == 1 ? "" : "s")" } ?? "used by another command"
            text += "bucket   \(copy.name): \(objects)"
            text += copy.unsent == 0 ? "" : ", \(copy.unsent) not sent"
            text += copy.refused.isEmpty ? "\n" : ", \(copy.refused.count) of them refused\n"
        }
        for copy in copies {
            for edit in copy.refused { text += "refused  \(OpenBucket.line(edit, in: copy.name))\n" }
        }
        if unsent > 0, problem == nil {
            text +=
                "Edits that were not sent are sent with the next command on their bucket, such as 'thicket ls "
                + "BUCKET'.\n"
        }
        if let problem { text += "problem  \(problem.text)\n" }
        return text
    }

    private static func json(
        _ account: Account, _ copies: [Copy], _ user: String?, _ problem: Failure?
    ) -> JSONObject {
        let buckets: [JSONValue] = copies.map { (copy: Copy) in
            var object: JSONObject = ["bucket": .string(copy.name)]
            object["objects"] = copy.objects.map { .number(JSONNumber(Int64($0))) } ?? .null
            object["unsent"] = .number(JSONNumber(Int64(copy.unsent)))
            object["refused"] = .array(
                copy.refused.map { edit in
                    let code: JSONValue = edit.error.number.map { .number(JSONNumber(Int64($0))) } ?? .null
                    return ["key": .string(edit.key), "code": code, "reason": .string(edit.reason)]
                })
            return .object(object)
        }
        return [
            "profile": account.folder == nil ? .null : .string(account.profileName),
            "server": .string(account.profile.server), "app": .string(account.profile.app),
            "user": user.map(JSONValue.string) ?? .null, "online": .bool(problem == nil),
            "problem": problem.map { .string($0.text) } ?? .null, "buckets": .array(buckets),
        ]
    }
}
