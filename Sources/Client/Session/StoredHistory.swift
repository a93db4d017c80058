package import ThicketProtocol
internal import ThicketSealed

/// What the server stores of one object of a sealed bucket, in the file format of `thicket history --export` and
/// `thicket verify-history`: `{"history":1,"app":…,"bucket":…,"object":server
/// key,"versions":[{"version":n,"value":{z,s,d}},…]}`, the oldest version first. It holds only what the server has.
package struct StoredHistory: Sendable, Equatable {
    package let app: String
    package let bucket: String
    /// The server's key of the object.
    package let object: String
    package let versions: [ObjectVersion]

    private static let form: Int64 = 1

    package init(app: String, bucket: String, object: String, versions: [ObjectVersion]) {
        (self.app, self.bucket, self.object) = (app, bucket, object)
        self.versions = versions.sorted { $0.version < $1.version }
    }

    package var json: JSONValue {
        [
            "history": .number(JSONNumber(Self.form)), "app": .string(app), "bucket": .string(bucket),
            "object": .string(object),
            "versions": .array(
                versions.map { ["version": .number(JSONNumber($0.version)), "value": .object($0.object)] }),
        ]
    }

    /// - Returns: nil for anything that `json` does not write, such as version numbers that do not increase.
    package init?(_ json: JSONValue) {
        guard json["history"]?.intValue == Self.form, let app = json["app"]?.stringValue,
            let bucket = json["bucket"]?.stringValue, let object = json["object"]?.stringValue,
            let list = json["versions"]?.arrayValue
        else { return nil }
        var versions = [ObjectVersion]()
        for entry in list {
            guard let version = entry["version"]?.intValue, version > versions.last?.version ?? 0,
                let value = entry["value"]?.objectValue
            else { return nil }
            versions.append(ObjectVersion(version: version, object: value))
        }
        self.init(app: app, bucket: bucket, object: object, versions: versions)
    }

    /// Verifies the versions against each other, offline.
    ///
    /// - Throws: `sealed` when the keys do not belong to the bucket.
    package func check(by account: OpenAccount) throws(ClientError) -> HistoryReport {
        guard app.utf8.elementsEqual(account.app.utf8) else {
            throw ClientError(
                .sealed, "this is a history of the app '\(app)', and the keys are those of '\(account.app)'")
        }
        let keys = try SessionKeys(account).keys(of: bucket)
        var history: SealedHistory
        do { history = try SealedHistory(keys: keys, serverKey: object) } catch {
            throw ClientError(.sealed, "an object's key could not be derived: \(error)")
        }
        for version in versions { history.read(version.object, version: version.version) }
        return HistoryReport(history)
    }
}

/// The result of verifying a stored history.
package struct HistoryReport: Sendable, Equatable {
    /// What failed, as texts for the user: version by version, without content.
    package let findings: [String]
    /// The app's key; nil when the last version cannot be opened or is inconsistent.
    package let name: String?
    /// The position of the newest operation, and the number of devices that have written.
    package let operations: Int
    package let devices: Int
    /// How often the object was recreated, as far as the versions show it.
    package let recreations: Int

    init(_ history: SealedHistory) {
        (findings, name) = (history.findings.map(\.description), history.log?.appKey)
        operations = history.log?.position ?? 0
        devices = history.log?.lastPositions.count ?? 0
        recreations = history.recreations
    }
}
