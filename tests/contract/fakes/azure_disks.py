"""Managed disks of azure.py that are made by themselves, and what attaches them to a machine.
https://learn.microsoft.com/rest/api/compute/disks/create-or-update , .../virtual-machines/attach-detach-data-disks
"""
from base import Refusal
from rules import Rules, flatten

KINDS = ("Premium_LRS", "StandardSSD_LRS", "Standard_LRS", "Premium_ZRS", "StandardSSD_ZRS")
DISK = Rules("!location tags.* zones.N sku.name !properties.creationData.createOption properties.diskSizeGB "
             "properties.encryption.type properties.encryption.diskEncryptionSetId properties.maxShares "
             "properties.networkAccessPolicy properties.publicNetworkAccess properties.osType properties.tier")
ATTACHED = Rules("!diskId lun caching deleteOption writeAcceleratorEnabled diskEncryptionSet.*")


class Disks:

    def check_disk(self, p):
        wrong = DISK.unknown(flatten(p)) or DISK.missing(flatten(p))
        if wrong:
            raise Refusal(400, "BadRequest", f"Could not find member '{wrong}' on object of type 'ResourceDefinition'.")
        size, kind = p["properties"].get("diskSizeGB"), (p.get("sku") or {}).get("name", "Standard_LRS")
        if kind not in KINDS or p["properties"]["creationData"]["createOption"] != "Empty":
            raise Refusal(400, "InvalidParameter", f"The value {kind} of sku.name, or createOption, is invalid.")
        if type(size) is not int or not 1 <= size <= 32767:
            raise Refusal(400, "InvalidParameter", f"The value {size} of parameter disk.diskSizeGB is out of range.",
                          target="disk.diskSizeGB")

    def told_of_disk(self, r):
        """What a disk has beside its properties."""
        owner = r["thing"].machine and self.vm(r["thing"].machine)
        more = dict(managedBy=self.base + "Microsoft.Compute/virtualMachines/" + owner.name) if owner else {}
        if r.get("zones"):
            more["zones"] = r["zones"]
        return dict(more, sku=dict(name=r.get("kind", "Premium_LRS")))

    def do_attachDetachDataDisks(self, request):
        m, p = self.need(), request.json() or {}
        if set(p) - {"dataDisksToAttach", "dataDisksToDetach"} or not (p.get("dataDisksToAttach") or
                                                                      p.get("dataDisksToDetach")):
            raise Refusal(400, "BadRequest", "There is nothing to attach or to detach, or something unknown.")
        if m.phase not in ("running", "stopped"):
            raise Refusal(409, "OperationNotAllowed", f"The VM is {m.phase}.")
        storage = m.facts["body"]["properties"]["storageProfile"]
        found = [self.attachable(m, storage, one) for one in p.get("dataDisksToAttach") or []]
        for one, disk in zip(p.get("dataDisksToAttach") or [], found):
            disk["thing"].machine, disk["thing"].dies_with = m.id, one.get("deleteOption") == "Delete"
            storage.setdefault("dataDisks", []).append(
                dict(lun=one.get("lun", 0), name=disk["name"], createOption="Attach",
                     caching=one.get("caching", "None"), deleteOption=one.get("deleteOption", "Detach"),
                     managedDisk=dict(id=disk["id"], storageAccountType=disk.get("kind"))))
        for one in p.get("dataDisksToDetach") or []:
            self.live(one["diskId"])["thing"].machine = None
            storage["dataDisks"] = [d for d in storage["dataDisks"]
                                    if d["managedDisk"]["id"].lower() != one["diskId"].lower()]
        return self.operation_reply(202, "patch", m, m.region, storage)

    def attachable(self, m, storage, one):
        wrong = ATTACHED.unknown(flatten(one)) or ATTACHED.missing(flatten(one))
        if wrong:
            raise Refusal(400, "BadRequest", f"Could not find member '{wrong}' on object of type 'DataDisksToAttach'.")
        disk = self.live(one["diskId"])
        if not disk:
            raise Refusal(404, "NotFound", f"Disk {one['diskId'].rpartition('/')[2]} is not found.", target="dataDisk")
        owner = disk["thing"].machine and self.vm(disk["thing"].machine)
        if owner:
            raise Refusal(409, "ConflictingUserInput", f"Disk '{disk['id']}' cannot be attached as the disk is already "
                          f"owned by VM '{self.base}Microsoft.Compute/virtualMachines/{owner.name}'.")
        if one.get("lun", 0) in [d["lun"] for d in storage.get("dataDisks") or []]:
            raise Refusal(409, "ConflictingUserInput", f"A disk at LUN {one.get('lun', 0)} already exists.")
        if (disk.get("zones") or []) != (m.facts["body"].get("zones") or []):
            raise Refusal(400, "BadRequest", f"Disk {disk['name']} cannot be attached to the VM because it is not in "
                          "the same zone as the VM.")
        told = self.types[m.type].facts.get("told", {})
        if disk.get("kind", "").startswith("Premium") and told.get("PremiumIO", "True") != "True":
            raise Refusal(400, "InvalidParameter", "Requested operation cannot be performed because the VM size "
                          f"{m.type} does not support the storage account type {disk['kind']} of disk.")
        return disk
